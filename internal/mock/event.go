// SPDX-License-Identifier: Apache-2.0

package mock

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"slices"
	"strings"
)

// Outcome is what became of a call at its arrival.
type Outcome string

const (
	Admitted Outcome = "admitted" // by the limits
	Refused  Outcome = "refused"  // by the limits
	Failed   Outcome = "failed"   // on command, or for a bad request
	Free     Outcome = "free"     // models, count_tokens: no limit applies
)

// Event is one call in the ledger.
type Event struct {
	Seq uint64 `json:"seq"`
	// At is the moment by which the limits judged, in unix nanoseconds.
	At int64 `json:"at"`
	// End is when the last bytes of the answer left, 0 before.
	End     int64   `json:"end,omitempty"`
	Outcome Outcome `json:"outcome"`
	Tag     string  `json:"tag,omitempty"`
	Model   string  `json:"model,omitempty"`
	// Key is MaskKey of the caller's API key.
	Key    string `json:"key,omitempty"`
	Method string `json:"method"`
	Path   string `json:"path"`
	Proto  string `json:"proto"`
	Stream bool   `json:"stream,omitempty"`
	// Input and Output are what was used: 0 unless admitted, Output 0 until the end.
	Input  int64 `json:"input"`
	Output int64 `json:"output"`
	// Reserved is input plus the declared maximum: what was asked for.
	Reserved int64 `json:"reserved"`
	Status   int   `json:"status"`
	// Aborted: the connection broke, or the caller left, before the end.
	Aborted bool `json:"aborted,omitempty"`
	// Headers are the names that arrived, sorted, lower case; Watched are the
	// values of those that a gateway should have kept to itself.
	Headers []string          `json:"headers,omitempty"`
	Watched map[string]string `json:"watched,omitempty"`
	// ContentLength is -1 where none was declared.
	ContentLength int64  `json:"content_length"`
	BodyBytes     int64  `json:"body_bytes"`
	BodySHA256    string `json:"body_sha256,omitempty"`
}

// watched are prefixes of headers that must not leak to a provider.
var watched = []string{"X-Weir-", "X-Tenant", "X-User"}

// maxHeaderNames bounds the names kept of one call.
const maxHeaderNames = 64

// noteHeaders keeps the names of headers, and the values of watched ones.
func (e *Event) noteHeaders(h http.Header, lower *memo) {
	e.Headers = make([]string, 0, min(len(h), maxHeaderNames))
	for name, values := range h {
		if len(e.Headers) < maxHeaderNames {
			e.Headers = append(e.Headers, lower.get(name))
		}
		if len(name) > 1 && name[0] == 'X' && isWatched(name) {
			if e.Watched == nil {
				e.Watched = map[string]string{}
			}
			e.Watched[lower.get(name)] = strings.Join(values, ", ")
		}
	}
	slices.Sort(e.Headers)
}

func isWatched(name string) bool {
	return slices.ContainsFunc(watched, func(p string) bool { return strings.HasPrefix(name, p) })
}

// callerKey is the API key that a call brought, empty if none.
func callerKey(h http.Header) string {
	if v := h["X-Api-Key"]; len(v) > 0 {
		return v[0]
	}
	if v := h["Authorization"]; len(v) > 0 {
		return strings.TrimPrefix(v[0], "Bearer ")
	}
	return ""
}

// MaskKey is how the ledger names an API key: the start of its SHA-256, or
// "anonymous" for none.
func MaskKey(key string) string {
	if key == "" {
		return "anonymous"
	}
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:6])
}
