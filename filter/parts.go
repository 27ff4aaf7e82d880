// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"encoding/binary"

	"github.com/weirproxy/weir/policy"
	"github.com/weirproxy/weir/policy/queue"
)

// split gives classes with shares their parts of the limits of a provider's models.
func (p *Plugin) split(provider *policy.Provider) {
	if p.policy.Shares() == nil {
		return
	}
	if p.parts == nil {
		p.parts = map[*policy.Model][]policy.Part{}
	}
	for _, m := range provider.Models.Values() {
		limit := m.Limit
		if c := limit.Central(); c != nil {
			limit = c
		}
		if limit.Mode == policy.Enforce {
			name := binary.LittleEndian.AppendUint64([]byte{'P'}, uint64(m.Key()))
			p.parts[m] = queue.NewParts(p.vm.host, string(name), limit, p.policy.Classes)
		}
	}
}

// part is what a class has of a model's limits; nil where they are not split.
func (p *Plugin) part(m *policy.Model, class int) policy.Part {
	if parts := p.parts[m]; class < len(parts) {
		return parts[class]
	}
	return nil
}
