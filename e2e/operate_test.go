// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The access log of docs/operate.md, from a real Envoy, is what weir replay and weir usage read.
func TestLogsOfEnvoyAreRead(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/operate.md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, _ := strings.Cut(string(page), "```yaml\n")
	block, _, _ = strings.Cut(block, "```")
	access := filepath.Join(t.TempDir(), "access.log")
	block = strings.Replace(block, "/var/log/envoy/access.log", access, 1)
	s := newSplit(t, strings.Replace(tinyPolicy(1000), `"http://MOCK"}`, `"http://MOCK", models: {"*": {rpm: 600, tpm: 90_000}}}`, 1)+"log: {admit: warn, deny: warn, access: true, caller: true}\n")
	s.startEnvoy("whole", func(b string) string {
		return strings.Replace(b, "          stat_prefix: weir\n", "          stat_prefix: weir\n          "+strings.ReplaceAll(strings.TrimSpace(block), "\n", "\n          ")+"\n", 1)
	})
	send(t, s.proxy, call{tenant: "acme", output: 500})
	send(t, s.proxy, call{tenant: "acme", output: 600})
	send(t, s.proxy, call{tenant: "globex", output: 100})
	want := ""
	eventually(t, 20*time.Second, func() (bool, string) {
		_, out, errs := exec1(t, nil, "usage", access, "--csv")
		want = out + errs
		return strings.Count(out, ",acme,2,1,1,") == 1 && strings.Count(out, ",globex,1,1,0,") == 1, want
	})
	for policy, says := range map[string]string{s.policy: "Refused then 1, under this policy 1: 0 newly", writeFile(t, "loose.yaml", strings.Replace(tinyPolicy(5000), "MOCK", "x.test", 1)): "under this policy 0: 0 newly, and 1 that were refused pass"} {
		if code, out, errs := exec1(t, nil, "replay", access, "--policy", policy); code != 0 || !strings.Contains(out, says) || !strings.Contains(out, "\nacme ") {
			t.Errorf("no %q in\n%s%s", says, out, errs)
		}
	}
}
