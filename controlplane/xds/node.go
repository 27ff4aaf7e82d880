// SPDX-License-Identifier: Apache-2.0

package xds

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"github.com/weirproxy/weir/envoy"
)

// A Node is an Envoy as it describes itself.
type Node struct {
	ID      string
	Cluster string
	Version string // of Envoy
	Wasm    string // path of the filter that it has
	CAFile  string // path of the certificates that it trusts; may be empty

	minor int
}

// oldestMinor is the oldest Envoy 1.x that knows every field of what it is sent.
const oldestMinor = 36

func nodeOf(n *corev3.Node) Node {
	v := n.GetUserAgentBuildVersion().GetVersion()
	m := n.GetMetadata().GetFields()
	return Node{
		ID:      cut(n.GetId(), maxID+1),
		Cluster: cut(n.GetCluster(), maxID),
		Version: fmt.Sprintf("%d.%d.%d", v.GetMajorNumber(), v.GetMinorNumber(), v.GetPatch()),
		Wasm:    cut(m[envoy.MetadataWasm].GetStringValue(), maxPath),
		CAFile:  cut(m[envoy.MetadataCA].GetStringValue(), maxPath),
		minor:   int(v.GetMinorNumber()),
	}
}

// What whoever can connect says is shown and logged, even if it is then refused: no more of it than this, in bytes.
const (
	maxID      = 256 // as in the messages of the fleet
	maxPath    = 1024
	maxMessage = 4096
)

func cut(s string, most int) string { return strings.ToValidUTF8(s[:min(len(s), most)], "\ufffd") }

var wasmName = regexp.MustCompile(`^weir-([0-9a-f]{8})\.wasm$`)

// short is how much of a hash stands in the name of a filter.
func short(hash string) string { return hash[:min(len(hash), 8)] }

// check says why a node can get no configuration, or else what is odd about it. hash is of the filter that belongs to this
// control plane.
func (n *Node) check(hash string) (notes []string, err error) {
	if n.ID == "" {
		return nil, errors.New("this Envoy has no node id")
	}
	if len(n.ID) > maxID {
		return nil, fmt.Errorf("a node id has at most %d bytes", maxID)
	}
	m := wasmName.FindStringSubmatch(path.Base(n.Wasm))
	switch {
	case n.Wasm == "":
		return nil, fmt.Errorf("node %s does not say which filter it has: start it with what `weir bootstrap` prints, "+
			"or set %s in its node metadata to the path of weir-<hash>.wasm", n.ID, envoy.MetadataWasm)
	case m == nil:
		return nil, fmt.Errorf("node %s has a filter named %s: its name has to be weir-<first 8 digits of its sha256>.wasm, "+
			"as `weir up` and the images name it", n.ID, n.Wasm)
	}
	if hash != "" && m[1] != hash {
		notes = append(notes, fmt.Sprintf("other filter version: it has %s, this control plane comes with %s", m[1], hash))
	}
	if n.minor < oldestMinor {
		notes = append(notes, fmt.Sprintf("Envoy %s is older than 1.%d.0, the oldest that knows all that weir needs", n.Version, oldestMinor))
	}
	return notes, nil
}
