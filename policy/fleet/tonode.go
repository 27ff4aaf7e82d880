// SPDX-License-Identifier: Apache-2.0

package fleet

import "github.com/weirproxy/weir/policy"

// ToNode is all that the controller has for a node at the moment, as one document that replaces the one before: what the node
// has not said it has taken is said again. Nothing in it counts twice, so a node takes all of it each time.
type ToNode struct {
	Shares Shares // its Incarnation is the node's of the messages below as well
	Lent   []Lent // one without ids says: this quota is lent by the token ([Borrower]); a [Grant] says: it is shared
	Chunks []Chunk
	Rates  []Rate
}

// A Rate is how much of a limit of a provider's model is in force, for what the provider has answered. Shares follow it by
// themselves; nodes need its epoch, which they say with what they count ([Seen]).
type Rate struct {
	Key   string
	Epoch uint32
	Share policy.Share
}

// Where messages travel.
const (
	ReportPath     = "/v1/reports"
	ReportType     = "application/vnd.weir.report" // of the content; no web page can send it unasked
	ControlCluster = "weir_control"                // Envoy's name for the controller
	SharesName     = "weir.shares"                 // of the resource with a [ToNode]
)

const (
	kindToNode = 's'
	kindHello  = 'h'
)

// Numbers of parts. They never change their meaning.
const (
	partShares = 1 + iota
	partGrant
	partLent
	partChunk
	partRate
)

// Encode gives the bytes of the message.
func (m *ToNode) Encode() []byte {
	w := &writer{b: header(kindToNode)}
	w.uint(m.Shares.Epoch)
	w.uint(m.Shares.Incarnation)
	w.end(partShares)
	for i := range m.Shares.Grants {
		m.Shares.Grants[i].write(w)
	}
	for i := range m.Lent {
		m.Lent[i].write(w)
	}
	for i := range m.Chunks {
		m.Chunks[i].write(w)
	}
	for _, r := range m.Rates {
		w.text(r.Key)
		w.uint(uint64(r.Epoch))
		w.int(int64(r.Share))
		w.end(partRate)
	}
	return w.b
}

// DecodeToNode reads a message. One with an amount out of bounds is an error.
func DecodeToNode(b []byte) (*ToNode, error) {
	b, err := open(b, kindToNode)
	if err != nil {
		return nil, err
	}
	m, r := new(ToNode), reader{b: b}
	for number, p := r.part(); number != 0; number, p = r.part() {
		m.read(number, &p)
		r.bad = r.bad || p.bad
	}
	if r.bad {
		return nil, errFormat
	}
	for i := range m.Lent {
		m.Lent[i].Incarnation = m.Shares.Incarnation
	}
	for i := range m.Chunks {
		m.Chunks[i].Incarnation = m.Shares.Incarnation
	}
	if !m.ok() {
		return nil, errBounds
	}
	return m, nil
}

func (m *ToNode) read(number byte, p *reader) {
	switch number {
	case partShares:
		m.Shares.Epoch, m.Shares.Incarnation = p.uint(), p.uint()
	case partGrant:
		m.Shares.Grants = append(m.Shares.Grants, readGrant(p))
	case partLent:
		m.Lent = append(m.Lent, readLent(p))
	case partChunk:
		m.Chunks = append(m.Chunks, readChunk(p))
	case partRate:
		m.Rates = append(m.Rates, Rate{p.text(), uint32(p.uint()), policy.Share(p.int())})
	}
}

func (m *ToNode) ok() bool {
	ok := true
	for i := range m.Shares.Grants {
		g := &m.Shares.Grants[i]
		ok = ok && checkName(g.Key) && checkAmounts(g.Rate, g.Burst, g.Cap, g.Floor, g.Tokens) && checkTimes(g.Lease, g.Forget) && g.Floor <= g.Rate
	}
	for _, l := range m.Lent {
		ok = ok && checkName(l.Key) && checkTimes(l.Term)
	}
	for _, c := range m.Chunks {
		ok = ok && checkName(c.Key) && checkTimes(c.Term) && checkSums(c.Given)
	}
	for _, r := range m.Rates {
		ok = ok && checkName(r.Key) && checkAmounts(int64(r.Share))
	}
	return ok
}

// Encode gives the bytes of the message.
func (h Hello) Encode() []byte {
	w := &writer{b: header(kindHello)}
	w.uint(h.Epoch)
	w.end(1)
	return w.b
}

// DecodeHello reads a message.
func DecodeHello(b []byte) (h Hello, err error) {
	if b, err = open(b, kindHello); err != nil {
		return h, err
	}
	r := reader{b: b}
	for number, p := r.part(); number != 0; number, p = r.part() {
		if number == 1 {
			h.Epoch = p.uint()
		}
		r.bad = r.bad || p.bad
	}
	if r.bad {
		return Hello{}, errFormat
	}
	return h, nil
}
