// SPDX-License-Identifier: Apache-2.0

package access

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
)

// A Role is what somebody may do.
type Role uint8

// Roles. An admin may read, too.
const (
	Node  Role = 1 << iota // be an Envoy: take configuration, report, ask for central limits
	Read                   // see the page, its JSON and the metrics
	Admin                  // change something
)

var roles = map[string]Role{"node": Node, "read": Read, "admin": Read | Admin}

// An Identity is somebody who was asked who they are.
type Identity struct {
	name  string // of a token
	roles Role
	ids   []string // node ids that it may have; "*" is any
}

// May says whether somebody has a role.
func (i Identity) May(r Role) bool { return i.roles&r != 0 }

// Name is what somebody is called in logs: the name of the token, or of the certificate.
func (i Identity) Name() string { return i.name }

// MayBe says whether somebody may be the node of this id.
func (i Identity) MayBe(node string) bool {
	for _, id := range i.ids {
		if i.May(Node) && node != "" && (id == node || id == "*") {
			return true
		}
	}
	return false
}

// tokens are by their hash: to find one takes the same time however much of it is right.
type tokens map[[sha256.Size]byte]Identity

// minToken is the least length of a token: 128 bits in hexadecimal.
const minToken = 32

// parseTokens reads lines of a role, a name and a token; the name of a node is its id, or * for any. A line of nothing but a token
// is for everything. No error shows a token.
func parseTokens(b []byte) (tokens, error) {
	all := tokens{}
	for n, line := range strings.Split(string(b), "\n") {
		f := strings.Fields(line)
		if len(f) == 0 || strings.HasPrefix(f[0], "#") {
			continue
		}
		id := Identity{name: "token", roles: Node | Read | Admin, ids: []string{"*"}}
		if len(f) == 3 {
			role, ok := roles[f[0]]
			if !ok {
				return nil, fmt.Errorf("line %d: no such role: write node, read or admin", n+1)
			}
			id = Identity{name: f[1], roles: role, ids: f[1:2]}
		}
		token := f[len(f)-1]
		if len(f) != 1 && len(f) != 3 {
			return nil, fmt.Errorf("line %d: write ROLE NAME TOKEN, or a token alone", n+1)
		}
		if len(token) < minToken {
			return nil, fmt.Errorf("line %d: a token of %d characters, at least %d: openssl rand -hex 32", n+1, len(token), minToken)
		}
		hash := sha256.Sum256([]byte(token))
		if _, twice := all[hash]; twice {
			return nil, fmt.Errorf("line %d: this token is there before", n+1)
		}
		all[hash] = id
	}
	if len(all) == 0 {
		return nil, errors.New("no token in it")
	}
	return all, nil
}

// NodeToken gives the token by which a node says who it is: its own, or else one for any.
func NodeToken(list []byte, node string) (string, error) {
	if _, err := parseTokens(list); err != nil {
		return "", err
	}
	any := ""
	for line := range strings.Lines(string(list)) {
		switch f := strings.Fields(line); {
		case len(f) == 3 && f[0] == "node" && f[1] == node:
			return f[2], nil
		case len(f) == 3 && f[0] == "node" && f[1] == "*", len(f) == 1 && f[0][0] != '#' && any == "":
			any = f[len(f)-1]
		}
	}
	if any == "" {
		return "", fmt.Errorf("no token for node %s", node)
	}
	return any, nil
}
