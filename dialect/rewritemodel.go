// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"cmp"
	"net/url"
	"strings"

	"github.com/weirproxy/weir/policy/jsonwalk"
)

// SetModel gives the body with another model in each member that names it, wherever a parser would look that keeps one of
// several. It is nil for a body that is no JSON object, or names no model.
func SetModel(body []byte, model string) []byte {
	var w rewriter
	if !w.open(body) {
		return nil
	}
	jsonwalk.Members(w.body[w.start:], func(key, value string) bool {
		if isOneOf(key, modelNames) {
			w.replace(value, quoted(model))
		}
		return true
	})
	if len(w.edits) == 0 {
		return nil
	}
	return w.bytes()
}

var modelNames = []string{"model"}

// quoted writes a name as JSON; names have no control characters.
func quoted(name string) string {
	return `"` + strings.ReplaceAll(strings.ReplaceAll(name, `\`, `\\`), `"`, `\"`) + `"`
}

// Produces says whether calls of the API bring forth text, so that another model can do it in place of the one that was asked.
func (a API) Produces() bool { return a.Metered() && forms[a].declared != nil }

// SetPathModel gives the path of a call with another model's name in it. It is empty if the path is written in so odd a way that
// it would then be another call's.
func (d Dialect) SetPathModel(method, path, model string) string {
	end := len(path)
	if i := strings.IndexAny(path, "?#"); i >= 0 {
		end = i
	}
	was := d.CallOf(method, path)
	lower := lowerASCII(path[:end])
	for i := range speeches[d].endpoints {
		e := &speeches[d].endpoints[i]
		marker := cmp.Or(e.marker, deployments)
		name, ok := strings.CutSuffix(lower, e.suffix)
		at := strings.LastIndex(name, marker) + len(marker)
		if !ok || at < len(marker) {
			continue
		}
		to := len(name)
		if slash := strings.IndexByte(name[at:], '/'); e.marker == "" && slash >= 0 {
			to = at + slash
		}
		out := path[:at] + url.PathEscape(model) + path[to:]
		if is := d.CallOf(method, out); is.Model == model && is.API == was.API && is.Stream == was.Stream {
			return out
		}
	}
	return ""
}
