// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"net/url"
	"strconv"
	"strings"
)

// An endpoint is a kind of path and the API that is there.
type endpoint struct {
	suffix string // in lower case
	api    API
	marker string // what stands before the model's name in the path, which stands before the suffix; "": the body names it
	stream bool   // the path says that the answer is a stream
}

// joined is not inlined: the compiler would write it out for each dialect.
//
//go:noinline
func joined(lists ...[]endpoint) (all []endpoint) {
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}

// A Call is what method and path of a request say.
type Call struct {
	API    API
	Model  string // that the path names; "" if the body does
	Stream bool   // the path asks for a stream
}

// CallOf tells what a request is for, by the end of its path (with or without query). A path that is written in an unusual
// way, with double slashes, escaped slashes or other case, is recognised all the same: better limited than free.
func (d Dialect) CallOf(method, path string) Call {
	if d == Generic {
		return Call{API: Requests}
	}
	path = plainPath(path)
	lower := lowerASCII(path)
	if method == "GET" || method == "HEAD" || method == "OPTIONS" || method == "DELETE" || strings.HasSuffix(lower, "/cancel") {
		if method == "OPTIONS" || d.readable(lower) {
			return Call{API: Requests}
		}
		return Call{}
	}
	for i := range speeches[d].endpoints {
		e := &speeches[d].endpoints[i]
		if !strings.HasSuffix(lower, e.suffix) {
			continue
		}
		if model, ok := e.model(path, lower); ok {
			return Call{API: e.api, Model: model, Stream: e.stream}
		}
	}
	return Call{}
}

// APIOf tells which API a request is for.
func (d Dialect) APIOf(method, path string) API { return d.CallOf(method, path).API }

// readable says whether a request that only reads is known to be free. A method of Google's in the path is no such request,
// for a header may say that it is a POST after all.
func (d Dialect) readable(path string) bool {
	for i := range speeches[d].endpoints {
		if e := &speeches[d].endpoints[i]; e.suffix[0] == ':' && strings.HasSuffix(path, e.suffix) {
			return false
		}
	}
	for _, r := range speeches[d].readable {
		if strings.HasSuffix(path, r) || strings.Contains(path, r+"/") {
			return true
		}
	}
	return false
}

// deployments is what stands before the model's name in Azure's form of OpenAI's paths, which all else may have, too. The
// deployment counts even if the body names a model: Azure does not look there.
const deployments = "/deployments/"

// model is the model's name in a path that ends as the endpoint does; false if there should be one and is none.
func (e *endpoint) model(path, lower string) (string, bool) {
	marker := e.marker
	if marker == "" {
		marker = deployments
	}
	end := len(path) - len(e.suffix)
	i := strings.LastIndex(lower[:end], marker)
	if i < 0 {
		return "", e.marker == ""
	}
	name := path[i+len(marker) : end]
	if u, err := url.PathUnescape(name); err == nil {
		name = u
	}
	if strings.HasPrefix(name, "arn:") { // of a Bedrock profile or model, whose own name comes last
		name = name[strings.LastIndexByte(name, '/')+1:]
	}
	name, _, _ = strings.Cut(name, "/")
	return name[:min(len(name), maxModel)], name != ""
}

// Climbs says whether a path has a dot segment that Envoy leaves alone and a provider may follow to another path than the one that was
// looked at: behind an escaped slash or a backslash, escaped twice, with a parameter (..;x), or plain where Envoy does not normalise.
func Climbs(path string) bool {
	path, _, _ = strings.Cut(path, "?")
	for range maxEscapes {
		if hasDotSegment(path) {
			return true
		}
		if strings.IndexByte(path, '%') < 0 {
			return false
		}
		plain := unescapedPath(path, true)
		if plain == path {
			return false
		}
		path = plain
	}
	return true // nobody honest escapes that often
}

// maxEscapes is how often a path may be escaped, and once more.
const maxEscapes = 4

func hasDotSegment(path string) bool {
	for i := 0; i < len(path); i++ {
		if path[i] != '.' || i > 0 && path[i-1] != '/' && path[i-1] != '\\' {
			continue
		}
		rest := strings.TrimPrefix(path[i+1:], ".")
		if rest == "" || strings.IndexByte("/\\;", rest[0]) >= 0 {
			return true
		}
	}
	return false
}

// plainPath drops the query and undoes doubled slashes and escapes of slashes, colons, and all that needs none, which servers
// undo, too. A path in plain form is not copied.
func plainPath(path string) string {
	if i := strings.IndexAny(path, "?#"); i >= 0 {
		path = path[:i]
	}
	if strings.IndexByte(path, '%') >= 0 {
		path = unescapedPath(path, false)
	}
	for strings.Contains(path, "//") {
		path = strings.ReplaceAll(path, "//", "/")
	}
	return strings.TrimRight(path, "/")
}

// unescapedPath undoes escapes: all, or those that make no difference.
func unescapedPath(path string, all bool) string {
	out := make([]byte, 0, len(path))
	for i := 0; i < len(path); i++ {
		c := path[i]
		if c == '%' && i+2 < len(path) {
			n, err := strconv.ParseUint(path[i+1:i+3], 16, 8)
			if b := byte(n); err == nil && (all || isUnreserved(b) || b == '/' || b == ':') {
				c = b
				i += 2
			}
		}
		out = append(out, c)
	}
	return string(out)
}

// isUnreserved says whether a byte means the same escaped and plain (RFC 3986, 2.3).
func isUnreserved(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("-._~", c) >= 0
}

// lowerASCII leaves all else as it is, so that what is found in it is at the same place in the path.
func lowerASCII(s string) string {
	for i := range len(s) {
		if 'A' <= s[i] && s[i] <= 'Z' {
			b := []byte(s)
			for ; i < len(b); i++ {
				if 'A' <= b[i] && b[i] <= 'Z' {
					b[i] |= 0x20
				}
			}
			return string(b)
		}
	}
	return s
}
