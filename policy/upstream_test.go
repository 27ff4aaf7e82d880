// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// parsesWell is goodUpstream by net/url, which the control plane reads the address with.
func parsesWell(s string) bool {
	u, err := url.Parse(s)
	if err != nil {
		return false
	}
	port, err := strconv.ParseUint(cmp.Or(u.Port(), "80"), 10, 16)
	return err == nil && port > 0 && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" &&
		u.RawQuery == "" && !u.ForceQuery && u.Fragment == "" && u.User == nil
}

func TestUpstreams(t *testing.T) {
	parts := []string{
		"http", "HTTPS", "https", "ftp", "://", ":", "/", "//", "api.openai.com", "10.0.0.1", "[::1]", "[fe80::1%25eth0]", "[", "]", "::1",
		":443", ":0", ":65536", ":x", "v1", "%41", "%4", "?", "#", "#x", "@", "u:p@", "\\", "_", "-", "..", "\n", "[::ffff:1.2.3.4]",
	}
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.SampledFrom([]string{"", "https://", "http://", "https://h"}).Draw(t, "head") +
			strings.Join(rapid.SliceOfN(rapid.SampledFrom(parts), 0, 6).Draw(t, "parts"), "")
		if goodUpstream(s) && !parsesWell(s) {
			t.Errorf("%q is good, but the control plane cannot read it", s)
		}
	})
	for s, want := range map[string]bool{
		"https://api.openai.com": true, "HTTP://10.0.0.1:8080/v1/": true, "http://[::1]:1/a%20b": true, "http://[fe80::1%25eth0]": true,
		"https://a_b.internal:": true, "https://h//x@y": true, "http://a:65535": true,
		"": false, "api.openai.com": false, "https:/h": false, "https://": false, "https:///v1": false, "ftp://h": false, "https://u@h": false,
		"https://h?q": false, "https://h/?": false, "https://h/#x": false, "https://h:0": false, "https://h:65536": false, "https://h:x": false,
		"https://[::1": false, "https://[10.0.0.1]": false, "https://[::1]x": false, "https://::1": false, "https://h/%4": false,
		"https://a b": false, "https://h\n": false, "https://h:1:2": false,
	} {
		if goodUpstream(s) != want || parsesWell(s) != want {
			t.Errorf("%q: %v", s, !want)
		}
	}
}
