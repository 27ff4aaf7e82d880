// SPDX-License-Identifier: Apache-2.0

package translate

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"

	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/protobuf/proto"
)

// Version is a short hash of content.
func Version(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:6])
}

// A Message is a resource.
type Message interface {
	proto.Message
	ValidateAll() error
}

// Types gives the resources by type URL.
func (s *Set) Types() map[string][]Message {
	return map[string][]Message{
		resourcev3.ListenerType:        messages(s.Listeners),
		resourcev3.RouteType:           messages(s.Routes),
		resourcev3.ClusterType:         messages(s.Clusters),
		resourcev3.ExtensionConfigType: messages(s.Extensions),
	}
}

func messages[M Message](from []M) []Message {
	to := make([]Message, len(from))
	for i, m := range from {
		to[i] = m
	}
	return to
}

// Versions gives the version of each type: a hash of its resources.
func (s *Set) Versions() (map[string]string, error) {
	versions := map[string]string{}
	for typ, ms := range s.Types() {
		var all []byte
		for _, m := range ms {
			var err error
			if all, err = (proto.MarshalOptions{Deterministic: true}).MarshalAppend(all, m); err != nil {
				return nil, err
			}
		}
		versions[typ] = Version(all)
	}
	return versions, nil
}

// validate checks what the API demands of single fields; the rest is Envoy's to find.
func (s *Set) validate() error {
	var errs []error
	for _, ms := range s.Types() {
		for _, m := range ms {
			errs = append(errs, m.ValidateAll())
		}
	}
	return errors.Join(errs...)
}
