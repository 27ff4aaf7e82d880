// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"encoding/binary"

	"github.com/weirproxy/weir/policy"
)

// A Name says which quota a message is about: one meter of one key of a tier. It tells nothing of who that is to those who
// do not have the policy's secret. Its bytes are what [Holding.Key] and the keys of the other messages hold.
type Name struct {
	Tier      policy.Tier
	Dimension policy.Dimension
	Sub       uint8      // which of several windows of the dimension
	Key       policy.Key // of the tenant, user, tree …, as the buckets have it
	Entry     policy.Key // of the entry of the policy that the limit comes from, see [policy.EntryKey]
	Window    int64      // ms; amounts are units in this window
	Period    int64      // end of a fixed window, in s since 1970; 0 for all that does not begin by the clock
}

const nameLen = 3 + 8 + 8

// String gives the bytes of the name.
func (n Name) String() string {
	b := make([]byte, 0, nameLen+10)
	b = append(b, byte(n.Tier), byte(n.Dimension), n.Sub)
	b = binary.BigEndian.AppendUint64(b, uint64(n.Key))
	b = binary.BigEndian.AppendUint64(b, uint64(n.Entry))
	b = binary.AppendUvarint(b, uint64(n.Window))
	if n.Period > 0 {
		b = binary.AppendUvarint(b, uint64(n.Period))
	}
	return string(b)
}

// ParseName reads what String gives, and nothing else.
func ParseName(s string) (n Name, ok bool) {
	if len(s) <= nameLen || len(s) > maxName {
		return Name{}, false
	}
	r := reader{b: []byte(s[nameLen:])}
	n = Name{
		Tier: policy.Tier(s[0]), Dimension: policy.Dimension(s[1]), Sub: s[2],
		Key: policy.Key(binary.BigEndian.Uint64([]byte(s[3:]))), Entry: policy.Key(binary.BigEndian.Uint64([]byte(s[11:]))),
		Window: r.int(), Period: r.int(),
	}
	return n, !r.bad && n.String() == s
}
