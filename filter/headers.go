// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"slices"
	"strconv"
	"strings"

	"github.com/weirproxy/weir/dialect"
	"github.com/weirproxy/weir/policy"
)

// callOf tells what the request is for. An upgrade is nothing: what passes through it cannot be read.
func (s *Stream) callOf(path string) dialect.Call {
	if s.dialect != dialect.Generic && (s.header("upgrade") != "" || s.method == "CONNECT") {
		return dialect.Call{}
	}
	return s.dialect.CallOf(s.method, path)
}

// objection says why a request is refused whatever its cost.
func (s *Stream) objection(path string) policy.Reason {
	if s.doubled {
		return policy.BadIdentity
	}
	if dialect.Climbs(path) {
		return policy.BadPath
	}
	plain, _, _ := strings.Cut(path, "?")
	s.unmetered, _ = s.provider.Unmetered.Lookup(plain)
	if s.call.API == dialect.Unrecognised && !s.unmetered {
		return policy.NotMetered
	}
	return policy.None
}

// scanHeaders finds what is needed in one pass and gives the path.
func (s *Stream) scanHeaders() (path string) {
	s.length = -1
	for _, h := range s.headers {
		switch name := h[0]; name {
		case ":path":
			path = h[1]
		case ":method":
			s.method = h[1]
		case branchHeader:
			s.branch = true
		case "x-stainless-retry-count", "x-weir-retry": // OpenAI's and Anthropic's libraries count; planners declare it
			s.repeat = s.repeat || h[1] != "" && h[1] != "0"
		case "x-envoy-attempt-count": // of an Envoy before this one
			s.repeat = s.repeat || h[1] != "" && h[1] != "1"
		case "content-length":
			if n, err := strconv.ParseInt(h[1], 10, 64); err == nil && n >= 0 {
				s.length = n
			}
		default:
			if i := indexOf(s.plugin.identity, name); i >= 0 {
				s.doubled = s.doubled || s.identity&(1<<i) != 0
				s.identity |= 1 << i
			}
		}
	}
	return path
}

// header is the first header of a name. Inlined it would be some ten times on the way of each request.
//
//go:noinline
func (s *Stream) header(name string) string {
	for _, h := range s.headers {
		if h[0] == name {
			return h[1]
		}
	}
	return ""
}

// signs says whether the request's signature, in AWS's way, covers a header, which must then stay as it is.
func (s *Stream) signs(name string) bool {
	if s.dialect != dialect.Bedrock {
		return false
	}
	_, signed, _ := strings.Cut(s.header("authorization"), "SignedHeaders=")
	signed, _, _ = strings.Cut(signed, ",")
	return slices.Contains(strings.Split(strings.TrimSpace(signed), ";"), name)
}

// headerOf is header, and how often it came.
func (s *Stream) headerOf(name string) (value string, n int) {
	for _, h := range s.headers {
		if h[0] == name {
			value = h[1]
			n++
		}
	}
	return value, n
}

// identityHeader is a header that names a tier. Most requests have few of those that the policy knows.
func (s *Stream) identityHeader(name string) string {
	if s.identity == 0 || s.identity&(1<<indexOf(s.plugin.identity, name)) == 0 {
		return ""
	}
	return strings.TrimSpace(s.header(name))
}

// disguised says whether a header with underscores is one that must not leave for who takes them for hyphens, as CGI and its heirs do:
// x_tenant would be read there as the x-tenant that weir lets nobody write.
func (p *Plugin) disguised(name string) bool {
	name = strings.ReplaceAll(name, "_", "-")
	return strings.HasPrefix(name, "x-weir-") || strings.HasPrefix(name, "x-envoy-") || indexOf(p.identity, name) >= 0
}

func indexOf(names []string, name string) int {
	for i, n := range names {
		if n == name {
			return i
		}
	}
	return -1
}
