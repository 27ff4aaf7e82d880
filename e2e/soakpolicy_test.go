// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"time"
)

// A soakLimit may have been in force from a time on.
type soakLimit struct {
	tpm      int64
	from, to time.Time // to: when Envoy had acknowledged the next one
}

const soakPolicy = `
apiVersion: weir/v1
trust: [all]
who:
  tenant: [header x-tenant, default none]
  user: [header x-user, body user]
  tree: [header x-tree]
  class: [header x-priority, default hasty]
providers:
  openai:    {upstream: "http://MOCK", models: {"*": {tpm: 2_000_000, rpm: 60_000}}}
  stormy:    {upstream: "http://MOCK", dialect: openai, models: {"*": {tpm: 400_000, rpm: 3_000}}}
  anthropic: {upstream: "http://MOCK", models: {"*": {tpm: 2_000_000}}}
  wild:      {upstream: "http://WILD", dialect: openai, models: {"*": {rpm: 60_000}}, adapt: off}
  feral:     {upstream: "http://WILD", dialect: openai, models: {"*": {rpm: 60_000}}}
  search:    {upstream: "http://MOCK", dialect: generic}
limits:
  tenant:
    default:  {tpm: 60_000, in_flight: 8}
    exact:    {tpm: 6_000, in_flight: 12}
    few:      {rpm: 30}
    central:  {rpm: 40, scope: central}
    moving:   {tpm: MOVING}
    ledger-0: {tpd: 1_000_000_000, reset: UTC RESET, in_flight: 40}
    ledger-1: {tpd: 1_000_000_000, reset: UTC RESET, in_flight: 40}
    ledger-2: {tpd: 1_000_000_000, reset: UTC RESET, in_flight: 40}
  user: {default: {rpm: 300}}
  tree: {default: {calls: 40, retries: 5, ttl: 1m}}
  tool: {search: {rpm: 600}}
classes:
  critical: {priority: 3, on_limit: queue, wait: 4s}
  normal:   {priority: 2, on_limit: queue, wait: 4s, aging: 2s}
  hasty:    {priority: 1}
queue: {entries: 100, bytes: 8MiB}
fleet: {scope: node, lease: 5s}
log: {access: true, caller: true}
explain: {header: true}
endpoints: true
fanout: {ttl: 2s}
hints: {header: true}
`

var soakMoves = []int64{12_000, 6_000, 9_000}

func (s *soak) text(tpm int64) string {
	return strings.NewReplacer("MOVING", fmt.Sprint(tpm), "RESET", s.reset, "WILD", s.wild).Replace(soakPolicy)
}

// push gives the control plane a policy in which moving has another limit; with wait it waits until Envoy has it.
func (s *soak) push(tpm int64, more string, wait bool) {
	s.t.Helper()
	now := time.Now()
	s.inForce = append(s.inForce, soakLimit{tpm: tpm, from: now})
	replaceFile(s.t, s.policy, strings.ReplaceAll(s.text(tpm)+more, "MOCK", s.mock.addr))
	if !wait {
		return
	}
	eventually(s.t, time.Minute, func() (bool, string) {
		st := readStatus(s.t, s.status)
		for _, n := range st.Nodes {
			if n.ID == "e2e" && n.Policy == st.Policy.Version && st.Policy.Version != "" && st.Problem == nil {
				return true, ""
			}
		}
		return false, fmt.Sprintf("the policy is not acknowledged: %+v", st)
	})
	for i := range s.inForce[:len(s.inForce)-1] {
		if s.inForce[i].to.IsZero() {
			s.inForce[i].to = time.Now().Add(5 * time.Second) // the workers follow
		}
	}
}
