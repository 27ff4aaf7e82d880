// SPDX-License-Identifier: Apache-2.0

package sim

// count gives the largest or smallest number that any window holds, or that of the whole run.
func (r *scenarioRun) count(w *want) (found int64) {
	if !w.admitted {
		for _, a := range r.refused {
			if w.tenant == "" || a.caller.Tenant == w.tenant {
				found += map[string]int64{"calls": 1, "tokens": a.input + max(a.output, 0)}[w.unit]
			}
		}
		return found
	}
	var calls []*admitted
	for _, c := range r.history {
		if w.tenant == "" || c.ask.caller.Tenant == w.tenant {
			calls = append(calls, c)
		}
	}
	amount := func(c *admitted) int64 {
		if w.unit == "calls" {
			return 1
		}
		return c.cost.Input + c.cost.Output
	}
	if w.window == 0 {
		for _, c := range calls {
			found += amount(c)
		}
		return found
	}
	return r.window(calls, amount, w)
}

// window slides over the calls. The least is that of windows that lie within the run and begin with a call.
func (r *scenarioRun) window(calls []*admitted, amount func(*admitted) int64, w *want) (found int64) {
	var sum int64
	least, next := int64(-1), 0
	for _, c := range calls {
		for next < len(calls) && calls[next].at < c.at+int64(w.window) {
			sum += amount(calls[next])
			next++
		}
		found = max(found, sum)
		if c.at+int64(w.window) <= start+int64(r.ends) && (least < 0 || sum < least) {
			least = sum
		}
		sum -= amount(c)
	}
	if w.compare == ">=" {
		return max(least, 0)
	}
	return found
}
