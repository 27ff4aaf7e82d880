// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/weirproxy/weir/policy"
	"github.com/weirproxy/weir/policy/policytest"
)

// A sizing is what a tenant, or one of its users, has asked for, and which limits would have refused none of it.
type sizing struct {
	Tenant   string `json:"tenant"`
	User     string `json:"user,omitempty"` // empty: all of the tenant
	Requests int    `json:"requests"`
	Tokens   int64  `json:"tokens"`
	RPM      spread `json:"requests_per_minute"`
	TPM      spread `json:"tokens_per_minute"`
}

// A spread is the use of minutes in which anything was asked for.
type spread struct {
	P50    int64 `json:"p50"`
	P95    int64 `json:"p95"`
	P99    int64 `json:"p99"`
	Max    int64 `json:"max"`    // in any minute, whenever it begins
	Enough int64 `json:"enough"` // the least limit that would have refused nothing, with its default burst
}

// An asked is a request of one key.
type asked struct {
	at       int64
	requests int64
	tokens   int64
}

// size sizes limits for those who asked for the most tokens, tenants before their users.
func (out *replayed) size(all []decided, top int) {
	tenants, users := map[string][]asked{}, map[[2]string][]asked{}
	for i := range all {
		d := &all[i]
		reserved, _, _ := tokensOf(d)
		tenant, user := d.word("tenant"), d.word("user")
		if tenant == "" {
			continue
		}
		a := asked{d.at.UnixNano(), 1, reserved.Input + reserved.Output}
		tenants[tenant] = append(tenants[tenant], a)
		if user != "" {
			users[[2]string{tenant, user}] = append(users[[2]string{tenant, user}], a)
		}
	}
	out.Sizes = []sizing{}
	for name, a := range tenants {
		out.Sizes = append(out.Sizes, sizing{Tenant: name, Requests: len(a), Tokens: sum(a)})
	}
	for name, a := range users {
		out.Sizes = append(out.Sizes, sizing{Tenant: name[0], User: name[1], Requests: len(a), Tokens: sum(a)})
	}
	most := map[string]int64{}
	for _, s := range out.Sizes {
		most[s.Tenant] = max(most[s.Tenant], s.Tokens)
	}
	slices.SortFunc(out.Sizes, func(a, b sizing) int {
		switch {
		case a.Tenant != b.Tenant && most[a.Tenant] != most[b.Tenant]:
			return int(min(max(most[b.Tenant]-most[a.Tenant], -1), 1))
		case a.Tenant != b.Tenant:
			return strings.Compare(a.Tenant, b.Tenant)
		case (a.User == "") != (b.User == ""):
			return strings.Compare(a.User, b.User)
		case a.Tokens != b.Tokens:
			return int(min(max(b.Tokens-a.Tokens, -1), 1))
		}
		return strings.Compare(a.User, b.User)
	})
	out.Sizes = out.Sizes[:min(len(out.Sizes), max(top, 0))]
	for i := range out.Sizes {
		s := &out.Sizes[i]
		a := tenants[s.Tenant]
		if s.User != "" {
			a = users[[2]string{s.Tenant, s.User}]
		}
		s.RPM = spreadOf(a, policy.RPM, func(a asked) int64 { return a.requests })
		s.TPM = spreadOf(a, policy.TPM, func(a asked) int64 { return a.tokens })
	}
}

func sum(all []asked) (n int64) {
	for _, a := range all {
		n += a.tokens
	}
	return n
}

// spreadOf is the spread over minutes of what was asked, which is in order of time.
func spreadOf(all []asked, d policy.Dimension, units func(asked) int64) spread {
	minutes, most, n := []int64{}, int64(0), int64(0)
	first := 0
	for i, a := range all {
		if i == 0 || a.at/int64(time.Minute) != all[i-1].at/int64(time.Minute) {
			minutes = append(minutes, 0)
		}
		minutes[len(minutes)-1] += units(a)
		for n += units(a); all[first].at <= a.at-int64(time.Minute); first++ {
			n -= units(all[first])
		}
		most = max(most, n)
	}
	slices.Sort(minutes)
	at := func(percent int) int64 { return minutes[min((len(minutes)*percent+99)/100, len(minutes))-1] }
	return spread{at(50), at(95), at(99), most, enough(all, d, units, most)}
}

// enough is the least limit, up to ten times the most that was asked in any minute, that a bucket and its ring would have refused
// nothing of.
func enough(all []asked, d policy.Dimension, units func(asked) int64, most int64) int64 {
	if most == 0 {
		return 0
	}
	return most + int64(sort.Search(int(9*most), func(more int) bool { return admits(all, d, units, most+int64(more)) }))
}

// admits says whether a limit refuses nothing.
func admits(all []asked, d policy.Dimension, units func(asked) int64, limit int64) bool {
	m := policy.NewMeter(policy.MeterSpec{Dimension: d, Limit: min(limit, policy.MaxUnits), Jitter: 100 * time.Millisecond})
	l := policy.NewLedger(policytest.NewStore(), 1)
	var path policy.Path
	path.Add(policy.Step{Tier: policy.TierTenant, Space: policy.Space{Tier: policy.TierTenant}, Key: 1, Owner: 1, Limit: policy.NewLimit(policy.Enforce, 0, m)})
	for _, a := range all {
		var r policy.Reservation
		cost := policy.Cost{Requests: 1}
		if d.Unit() == policy.Tokens {
			cost.Input = units(a)
		}
		if l.Reserve(a.at, &path, cost, &r).Verdict != policy.Admit {
			return false
		}
	}
	return true
}

// text is the report for people.
func (out *replayed) text(p paint) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d requests from %s to %s", out.Requests, out.From.UTC().Format(time.RFC3339), out.To.UTC().Format(time.RFC3339))
	if out.Skipped > 0 {
		fmt.Fprintf(&b, "; %d other lines", out.Skipped)
	}
	fmt.Fprintf(&b, ".\nRefused then %d, under this policy %s", out.RefusedThen, p.bold(fmt.Sprint(out.RefusedNow)))
	fmt.Fprintf(&b, ": %d newly, and %d that were refused pass", out.NewlyRefused, out.NewlyPassed)
	if out.WouldWait > 0 {
		fmt.Fprintf(&b, "; the classes of %d would have them wait first", out.WouldWait)
	}
	b.WriteString(".\n")
	if out.NoProvider > 0 {
		fmt.Fprintf(&b, "%d are of no provider of this policy.\n", out.NoProvider)
	}
	if out.NoCost > 0 {
		fmt.Fprintf(&b, "Of %d the log does not say how many tokens they asked for: they count as requests alone.\n", out.NoCost)
	}
	if len(out.By) > 0 {
		rows := [][]string{{"refused by", "key", "dimension", "limit", "requests", "reason"}}
		for _, r := range out.By {
			rows = append(rows, []string{r.Tier, r.Key, r.Dimension, fmt.Sprint(r.Limit), fmt.Sprint(r.Requests), r.Reason})
		}
		b.WriteString("\n" + columns(rows, 3))
	}
	if len(out.Sizes) == 0 {
		b.WriteString("\nNo line says who asked: log: {caller: true} in the policy has them do so.\n")
		return b.String()
	}
	rows := [][]string{{"tenant", "user", "requests", "tokens", "rpm p50", "p95", "p99", "max", "enough", "tpm p50", "p95", "p99", "max", "enough"}}
	for _, s := range out.Sizes {
		row := []string{s.Tenant, s.User, fmt.Sprint(s.Requests), fmt.Sprint(s.Tokens)}
		for _, n := range []spread{s.RPM, s.TPM} {
			row = append(row, fmt.Sprint(n.P50), fmt.Sprint(n.P95), fmt.Sprint(n.P99), fmt.Sprint(n.Max), fmt.Sprint(n.Enough))
		}
		rows = append(rows, row)
	}
	b.WriteString("\n" + columns(rows, 2))
	b.WriteString("max is in any minute; enough is the least limit, with its default burst, that refuses none of it. Tokens are those reserved.\n")
	return b.String()
}
