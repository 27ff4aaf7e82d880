// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"github.com/weirproxy/weir/dialect"
	"github.com/weirproxy/weir/policy"
)

// In an Envoy nobody watches, and nothing is linked for it.
type watcher struct{}

func (watcher) watches() bool { return false }

func (s *Stream) tellWatch(*asker, *policy.Model, *policy.Path, *dialect.Request, *policy.Cost) {}
