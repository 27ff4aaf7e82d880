// SPDX-License-Identifier: Apache-2.0

package filter_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/weirproxy/weir/filter/filtertest"
)

// The machine's policies. All have the same limits, so that what counts is the same under any of them.
const (
	machineHead = `,"apiVersion":"weir/v1","trust":["all"],"hints":{"header":true,"inject":true},"explain":{"header":true},"log":{"admit":"info","deny":"info"},"providers":{
	"openai":{"upstream":"http://openai.test","stream":{"include_usage":"add"},"models":{"big":{"rpm":"12","tpm":"3000","burst":"100%","in_flight":"9"},"small":{"rpm":"10","burst":"100%","in_flight":"5"}}},
	"azure":{"upstream":"http://azure.test","dialect":"openai","models":{"*":{"rpm":"5","burst":"100%"}}},
	"free":{"upstream":"http://free.test","dialect":"openai"},
	"search":{"upstream":"http://search.test","dialect":"generic"},"backup":{"upstream":"http://backup.test","dialect":"generic","models":{"*":{"rpm":"4","burst":"100%"}}}},
	"limits":{"tenant":{"default":{"rpm":"40","tpm":"9000","burst":"100%","in_flight":"15"}},"user":{"default":{"rpm":"30","burst":"100%","in_flight":"11"}},
		"tree":{"default":{"tokens":"9000","calls":"20","retries":"3","in_flight":"8","ttl":"1h","on_retries_spent":"degrade"}},"tool":{"search":{"rps":"3","burst":"100%"}}},
	"fanout":{"max":"6","ttl":"2s","per_tree":"2"},"queue":{"entries":"6","bytes":"4000"},"body":{"parse":"1KiB"},
	"degrade":{"big":{"model":"small","max_tokens":"60"}},"spill":{"big":{"provider":"azure","model":"gpt-4o"},"search":{"provider":"backup"}},"classes":`
	machineClasses = `{"critical":{"priority":9,"share":"40%","on_limit":"queue","wait":"2s"},"normal":{"priority":5,"share":"30%","on_limit":"degrade"},
		"spilling":{"priority":4,"on_limit":"spill"},"batch":{"priority":1,"on_limit":"queue","wait":"3s","aging":"1s"}}}`
	machineOther = `{"critical":{"priority":3,"on_limit":"queue","wait":"1s"},"normal":{"priority":2,"share":"60%","on_limit":"queue","wait":"2s"},"batch":{"priority":9,"share":"10%","on_limit":"degrade"}}}`
)

// longestWait is how long a request of any class waits at most.
const longestWait = 3 * time.Second

// A sending is one time that a request left. The twin knows of it only what a provider does.
type sending struct {
	at     int64
	x      *filtertest.Exchange
	places map[string]bool // whose limits it counts against
	again  bool            // it was sent before, by whomever
	open   bool
	tokens int64
}

// sendingOf tells by what left to whom it went.
func sendingOf(now int64, x *filtertest.Exchange, c *caller) *sending {
	places := map[string]bool{"tenant": true, "user " + c.user: true}
	if c.tree != "" {
		places["tree "+c.user+" "+c.tree] = true
	}
	provider, _, _ := strings.Cut(strings.TrimPrefix(x.Upstream(":path"), "/"), "/")
	var body struct{ Model string }
	_ = json.Unmarshal(x.Body, &body)
	switch provider {
	case "openai":
		places[body.Model] = true
	case "search":
		places["search"] = true
	default:
		places[provider] = true
	}
	return &sending{at: now, x: x, places: places, open: true, again: x.Attempts > 1 || c.again}
}

// machineLimits are those of the policies, in the twin's own words; window 0: in all.
var machineLimits = []struct {
	place                            string
	window                           time.Duration
	calls, tokens, parallel, retries int64
}{
	{"tenant", time.Minute, 40, 9000, 15, 0}, {"user ", time.Minute, 30, 0, 11, 0}, {"tree ", 0, 20, 9000, 8, 3},
	{"big", time.Minute, 12, 3000, 9, 0}, {"small", time.Minute, 10, 0, 5, 0}, {"azure", time.Minute, 5, 0, 0, 0}, {"backup", time.Minute, 4, 0, 0, 0}, {"search", time.Second, 3, 0, 0, 0},
}

// twin finds a limit that does not hold, by adding up all that was sent, in every window that ends with a sending.
func twin(all []*sending) (wrong string) {
	for _, l := range machineLimits {
		for _, last := range all {
			for place := range last.places {
				if !strings.HasPrefix(place, l.place) {
					continue
				}
				var calls, tokens, parallel, retries int64
				for _, s := range all {
					if !s.places[place] || s.at > last.at || l.window > 0 && s.at <= last.at-int64(l.window) {
						continue
					}
					calls++
					tokens += s.tokens
					if s.again {
						retries++
					}
				}
				for _, s := range all {
					if s.places[place] && s.open {
						parallel++
					}
				}
				if calls > l.calls || l.tokens > 0 && tokens > l.tokens || l.parallel > 0 && parallel > l.parallel || l.retries > 0 && retries > l.retries {
					return fmt.Sprintf("%s: %d calls, %d tokens, %d in parallel, %d retries; there may be %+v", place, calls, tokens, parallel, retries, l)
				}
			}
		}
	}
	return ""
}
