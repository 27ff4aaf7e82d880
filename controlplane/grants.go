// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weirproxy/weir/policy"
)

// A Grant raises one limit of a tenant for a time.
type Grant struct {
	Tenant string       `json:"tenant"`
	Limit  string       `json:"limit"` // the dimension, as tpm
	Add    policy.Count `json:"add"`
	Until  time.Time    `json:"until"`
	By     string       `json:"by"`
	At     time.Time    `json:"at"`
}

// Bounds of grants.
const (
	maxGrants    = 1000
	maxGrantTime = policy.MaxWindow
)

// grantable are the limits that may be raised.
func grantable(l *policy.LimitSpec) map[string]**policy.Count {
	return map[string]**policy.Count{
		"rps": &l.RPS, "rpm": &l.RPM, "rph": &l.RPH, "rpd": &l.RPD, "tpm": &l.TPM, "tph": &l.TPH, "tpd": &l.TPD,
		"itpm": &l.ITPM, "otpm": &l.OTPM, "in_flight": &l.InFlight,
	}
}

// add raises the limit in a policy. A tenant that has no entry gets one, like that of all who have none; what was counted of it
// stays (RATIONALE.md, "Why do named tenants have records of their own?").
func (g *Grant) add(s *policy.Spec) error {
	own := s.Limits.Tenant[g.Tenant]
	if own == nil {
		own = s.Limits.Tenant["default"]
	}
	if own == nil {
		return fmt.Errorf("tenant %s has no limit that could be raised", g.Tenant)
	}
	raised := *own
	to := grantable(&raised)[g.Limit]
	if to == nil || *to == nil {
		return fmt.Errorf("tenant %s has no limit %s: write one of %s", g.Tenant, g.Limit, strings.Join(limitsOf(own), ", "))
	}
	n := min(**to+g.Add, policy.MaxUnits)
	*to = &n
	s.Limits.Tenant[g.Tenant] = &raised
	return nil
}

// limitsOf names the limits that there are.
func limitsOf(l *policy.LimitSpec) (names []string) {
	for name, n := range grantable(l) {
		if *n != nil {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// check says what is wrong with a grant, whatever the policy.
func (g *Grant) check(now time.Time) error {
	switch {
	case g.Tenant == "" || len(g.Tenant) > policy.MaxName || !policy.Printable(g.Tenant):
		return fmt.Errorf("a tenant has 1 to %d bytes", policy.MaxName)
	case g.Tenant == "default" || g.Tenant == policy.Unknown:
		return fmt.Errorf("%s is no tenant, but all who have no entry or no name: change the policy", g.Tenant)
	case grantable(new(policy.LimitSpec))[g.Limit] == nil:
		return fmt.Errorf("%q is no limit that can be raised: write tpm, rpm, tpd, rpd or the like", g.Limit)
	case g.Add < 1 || g.Add > policy.MaxUnits:
		return fmt.Errorf("a grant is between 1 and %d", int64(policy.MaxUnits))
	case !g.Until.After(now) || g.Until.Sub(now) > maxGrantTime:
		return fmt.Errorf("a grant lasts at most %v", maxGrantTime)
	}
	return nil
}
