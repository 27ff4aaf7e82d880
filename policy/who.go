// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"strings"
)

// A SourceKind is where a tier's key may come from.
type SourceKind uint8

// Source kinds.
const (
	FromHeader   SourceKind = iota // header NAME
	FromBody                       // body PATH, a member of the JSON body
	FromAPIKey                     // api-key: a keyed hash of the provider's credential
	FromPeer                       // peer: the URI SAN of the caller's certificate
	FromClaim                      // claim PATH, of a token that jwt_authn checked
	FromSourceIP                   // source-ip
	FromTraceID                    // trace-id of traceparent
	FromDefault                    // default NAME
	FromBaggage                    // baggage KEY, of W3C's header
)

var sourceKinds = []struct {
	name string
	arg  bool
}{
	FromHeader: {"header", true}, FromBody: {"body", true}, FromAPIKey: {"api-key", false}, FromPeer: {"peer", false},
	FromClaim: {"claim", true}, FromSourceIP: {"source-ip", false}, FromTraceID: {"trace-id", false}, FromDefault: {"default", true},
	FromBaggage: {"baggage", true},
}

// A Source is one place where a tier's key may come from.
type Source struct {
	Kind SourceKind
	Arg  string // name of a header in lower case, path, or the default
}

// UnmarshalText reads a source.
func (s *Source) UnmarshalText(b []byte) error {
	kind, arg, _ := strings.Cut(string(b), " ")
	arg = strings.TrimSpace(arg)
	for i, k := range sourceKinds {
		if k.name != kind {
			continue
		}
		if k.arg != (arg != "") || strings.Contains(arg, " ") {
			break
		}
		if SourceKind(i) == FromHeader {
			arg = strings.ToLower(arg)
		}
		*s = Source{SourceKind(i), arg}
		return nil
	}
	return fmt.Errorf("%q is no source: write header NAME, body PATH, api-key, peer, claim PATH, source-ip, trace-id, baggage KEY or default NAME", b)
}

// MarshalText writes the source.
func (s Source) MarshalText() ([]byte, error) {
	k := sourceKinds[s.Kind]
	if k.arg {
		return []byte(k.name + " " + s.Arg), nil
	}
	return []byte(k.name), nil
}

// NeedsTrust says whether anybody can write what the source reads, so that only trusted callers are believed.
func (s Source) NeedsTrust() bool {
	return s.Kind == FromHeader || s.Kind == FromBody || s.Kind == FromBaggage
}

// Vouches says whether the source's names are such that callers cannot make up as many as they like: credentials are only
// checked by the provider, and addresses are cheap.
func (s Source) Vouches() bool {
	return s.Kind != FromAPIKey && s.Kind != FromSourceIP && s.Kind != FromTraceID
}

// Unmetered is the paths that pass though their tokens cannot be counted: none (deny), all (allow), or those that match.
type Unmetered []string

// SetScalar reads deny or allow.
func (u *Unmetered) SetScalar(s string) error {
	switch s {
	case "deny":
		*u = nil
	case "allow":
		*u = Unmetered{"*"}
	default:
		return fmt.Errorf("%q: write deny, allow, or a list of paths such as [/v1/realtime]", s)
	}
	return nil
}

// SetScalar reads off.
func (a *AdaptSpec) SetScalar(s string) error {
	if s != "off" {
		return fmt.Errorf("%q: write off, or {decrease: 0.7, increase: 5%%/30s}", s)
	}
	*a = AdaptSpec{Off: true}
	return nil
}
