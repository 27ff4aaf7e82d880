// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"strings"
	"testing"
)

// A limit is written where it stands, or where it would, and not a byte beside it changes.
func TestSet(t *testing.T) {
	const head = "apiVersion: weir/v1 # the version\nproviders:\n"
	for _, row := range []struct{ in, was, is, limit string }{
		{"  openai: {upstream: 'https://x.test', models: {\"gpt-*\": {rpm: 5, tpm: 30_000}}} # mine", "tpm: 30_000", "tpm: 500_000", "tpm"},
		{"  openai:\n    upstream: https://x.test # über\n    models:\n      # all of them\n      gpt-*:   {rpm: 5, tpm: 7} # tight\n", "tpm: 7", "tpm: 500_000", "tpm"},
		{"  openai:\n    upstream: https://x.test\n    models:\n      \"gpt-*\":\n        tpm:   \"30_000\"   # as said\n        rpm: 5\n", `"30_000"`, "500_000", "tpm"},
		{"  openai:\n    upstream: https://x.test\n    models:\n      \"gpt-*\":\n        # before\n        rpm: 5\n", "        rpm: 5\n", "        tpm: 500_000\n        rpm: 5\n", "tpm"},
		{"  openai: {upstream: 'https://x.test', models: {\"gpt-*\": {rpm: 5}}}", "{rpm: 5}", "{tpm: 500_000, rpm: 5}", "tpm"},
		{"  openai: {upstream: 'https://x.test', models: {\"*\": {rpm: 5}}}", "{\"*\"", "{\"gpt-*\": {tpm: 500_000}, \"*\"", "tpm"},
		{"  openai:\n    upstream: https://x.test # no models\n", "    upstream", "    models: {\"gpt-*\": {tpm: 500_000}}\n    upstream", "tpm"},
		{"  # before\n  openai:\n    # of it\n    upstream: https://x.test\n    models:\n      other: {rpm: 1}\n", "      other", "      \"gpt-*\": {tpm: 500_000}\n      other", "tpm"},
	} {
		files := []File{{"limits.yaml", []byte("limits: {tenant: {default: {tpm: 30_000}}}\n")}, {"policy.yaml", []byte(head + row.in)}}
		got, err := Set(files, Setting{"openai", "gpt-*", row.limit, 500_000})
		want := head + strings.Replace(row.in, row.was, row.is, 1)
		if err != nil || string(got[1].Data) != want || string(got[0].Data) != string(files[0].Data) {
			t.Errorf("%v\ngot\n%s\nwant\n%s", err, got, want)
		}
		if string(files[1].Data) != head+row.in {
			t.Error("what was given has changed")
		}
	}
}

func TestSetRefuses(t *testing.T) {
	const head = "apiVersion: weir/v1\nproviders:\n"
	for want, in := range map[string]string{
		"no provider openai":       "  other: {upstream: 'https://x.test', dialect: openai}\n",
		"alias":                    "  first: {upstream: 'https://y.test', dialect: openai, models: &m {\"gpt-*\": {tpm: 5}}}\n  openai: {upstream: 'https://x.test', models: *m}\n",
		"is no count":              "  openai: {upstream: 'https://x.test', models: {\"gpt-*\": {tpm: 5x}}}\n",
		"change it by hand":        "  openai: {upstream: 'https://x.test', models: {\"gpt-*\": &l {tpm: 5}, \"o*\": *l}}\n",
		"weir does not change: ch": "  openai: {upstream: 'https://x.test', models: {\"gpt-*\": {tpm: 5}}}\r\n",
	} {
		if got, err := Set([]File{{"policy.yaml", []byte(head + in)}}, Setting{"openai", "gpt-*", "tpm", 7}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v %s", want, err, got)
		}
	}
	if _, err := Set([]File{{"p", []byte(head + "  openai: {cluster: x}\n")}}, Setting{"openai", "*", "rpx", 7}); err == nil || !strings.Contains(err.Error(), "unknown key") {
		t.Error(err)
	}
}

func FuzzSet(f *testing.F) {
	f.Add("apiVersion: weir/v1\nproviders:\n  openai:\n    cluster: x\n    models:\n      \"*\": {tpm: 5}\n")
	f.Add("apiVersion: weir/v1\nproviders: {openai: {cluster: x, models: {'*': {rpm: 5}}}}")
	f.Fuzz(func(t *testing.T, text string) {
		s := Setting{"openai", "*", "tpm", 12345}
		got, err := Set([]File{{"p", []byte(text)}}, s)
		if err != nil {
			return
		}
		r, err := ParseFiles(got)
		if err != nil || *r.Spec.Providers["openai"].Models["*"].TPM != 12345 {
			t.Errorf("%v: %q", err, got[0].Data)
		}
	})
}
