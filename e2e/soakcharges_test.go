// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"io"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
)

// left asks what is left of the day's tokens of a ledger tenant, by a call that is not sent.
func (s *soak) left(tenant string) int64 {
	s.t.Helper()
	r := call{tenant: tenant, output: 1, headers: map[string]string{"x-weir-explain": "1", "x-mock-status": "400", "x-user": "last"}}.request(s.proxy)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	m := regexp.MustCompile(`dimension=tpd;limit=\d+;window=\d+;left=(\d+)`).FindStringSubmatch(resp.Header.Get("x-weir-explain"))
	if m == nil {
		s.t.Fatalf("%s: status %d, %v", tenant, resp.StatusCode, resp.Header)
	}
	n, _ := strconv.ParseInt(m[1], 10, 64)
	return n
}

// want is what a call should be charged, where that is known: to the token, but for an answer whose usage is no use. Where limits
// are hardly used weir may have relied on it, and takes the input by the length of its body. Of what is no stream it guesses the
// output by the length, too.
func (c *soakCall) want(used int64) (least, most int64, sure bool) {
	most = used + max(0, (c.sent+3)/4-inputOfHi)
	switch {
	case !c.whole || c.kind == "wild":
		return 0, 0, false
	case c.status != http.StatusOK:
		return 0, 0, true
	case c.kind == "lying plain":
		return used, most*3/2 + 60, true
	case c.kind == "lying stream":
		return used, most, true
	}
	return used, used, c.honest
}

// charges compares, call by call, what weir has charged with what the provider has given, and the sum with what is left.
func (s *soak) charges(left map[string]int64) {
	b, err := os.ReadFile(s.access)
	if err != nil {
		s.t.Fatal(err)
	}
	given := map[string][]event{}
	for _, e := range s.mock.events("") {
		given[e.Tag] = append(given[e.Tag], e)
	}
	charged, sums, bad, exact := map[string]int64{}, map[string]int64{}, 0, 0
	for line := range strings.Lines(string(b)) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(f) != 11 {
			s.t.Fatalf("access log: %q", line)
		}
		in, _ := strconv.ParseInt(f[6], 10, 64)
		out, _ := strconv.ParseInt(f[7], 10, 64)
		tenant, _, _ := strings.Cut(f[0], "@")
		charged[f[0]], sums[tenant] = in+out, sums[tenant]+in+out
	}
	for _, c := range s.done {
		used := int64(0)
		for _, e := range given[c.tag] {
			used += e.Input + e.Output
		}
		least, most, sure := c.want(used)
		if !sure {
			continue
		}
		if exact++; charged[c.tag] >= least && charged[c.tag] <= most {
			continue
		}
		if bad++; bad < 20 {
			s.t.Errorf("%s call of %s: weir has charged %d, it should be %d to %d: %+v", c.kind, c.tag, charged[c.tag], least, most, given[c.tag])
		}
	}
	s.t.Logf("%d calls were charged what they should", exact)
	for tenant, n := range left {
		if want := 1_000_000_000 - sums[tenant]; n != want {
			s.t.Errorf("%s: %d are left, by the log it is %d", tenant, n, want)
		}
	}
	if exact < 100 {
		s.t.Error("the test does not test anything")
	}
}
