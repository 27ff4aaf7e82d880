// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
)

const usageLog = `{"time":"2026-11-30T23:30:00Z","decision":"admit","tenant":"acme","user":"ann","model":"gpt-4o","charged_input":"100","charged_output":"200"}
{"time":"2026-11-30T23:40:00Z","decision":"deny","tenant":"acme","user":"bob","model":"gpt-4o","need":"5"}
{"time":"2026-12-01T00:10:00Z","decision":"degrade","tenant":"acme","user":"bob","model":"gpt-4o-mini","charged_input":"1","charged_output":"2"}
{"time":"2026-12-01T00:20:00Z","decision":"left"}
{"time":"2026-12-01T00:30:00Z","decision":"admit","tenant":"=1+1,\"x\"","charged_input":"7","charged_output":"0"}
not ours
`

// Days are those of the zone, tokens are those charged, and no caller's name becomes a formula.
func TestUsage(t *testing.T) {
	priced := write(t, "policy.yaml", "apiVersion: weir/v1\nproviders: {openai: {upstream: 'https://x.test', models: {'*': {tpm: 5}}}}\nprices: {gpt-4o: {input: 2, output: 10}}\n")
	for args, want := range map[string]string{
		"--csv": "day,tenant,requests,admitted,denied,input_tokens,output_tokens\n2026-11-30,acme,2,1,1,100,200\n" +
			"2026-12-01,\"'=1+1,\"\"x\"\"\",1,1,0,7,0\n2026-12-01,acme,1,1,0,1,2\n2026-12-01,unknown,1,0,0,0,0\n",
		"--csv --zone America/New_York": "day,tenant,requests,admitted,denied,input_tokens,output_tokens\n" +
			"2026-11-30,\"'=1+1,\"\"x\"\"\",1,1,0,7,0\n2026-11-30,acme,3,2,1,101,202\n2026-11-30,unknown,1,0,0,0,0\n",
		"--csv --by user --policy " + priced: "day,tenant,user,requests,admitted,denied,input_tokens,output_tokens,usd\n2026-11-30,acme,ann,1,1,0,100,200,0.002200\n" +
			"2026-11-30,acme,bob,1,0,1,0,0,0.000000\n2026-12-01,\"'=1+1,\"\"x\"\"\",unknown,1,1,0,7,0,0.000000\n2026-12-01,acme,bob,1,1,0,1,2,0.000000\n2026-12-01,unknown,unknown,1,0,0,0,0,0.000000\n",
		"--by user+model": "2026-11-30  acme      ann      gpt-4o              1         1       0           100            200\n",
		"--json":          `"input_tokens": 100,`,
	} {
		code, out, errs := weir(t, usageLog, append([]string{"usage", "-"}, strings.Fields(args)...)...)
		if code != 0 || out != want && !(strings.Contains(out, want) && !strings.Contains(args, "csv")) {
			t.Errorf("%s: %d\n%s%s\nwant\n%s", args, code, out, errs, want)
		}
	}
	for want, args := range map[string]string{"no time zone": "- --zone Nowhere/Else", "/nowhere": "/nowhere", "docs/operate.md": "- "} {
		if code, _, errs := weir(t, "no log", append([]string{"usage"}, strings.Fields(args)...)...); code != exitUsage || !strings.Contains(errs, want) {
			t.Errorf("%s: %d %s", want, code, errs)
		}
	}
}
