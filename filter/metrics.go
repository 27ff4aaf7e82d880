// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"strconv"
	"strings"

	"github.com/weirproxy/weir/dialect"
	"github.com/weirproxy/weir/policy"
	"github.com/weirproxy/weir/policy/feedback"
	"github.com/weirproxy/weir/policy/fleet"
)

// metrics are the counters of a VM, made when first needed: few of the combinations ever occur. They are counted in the VM's
// own memory and told the host once a second, so that counting costs a request no host call.
type metrics struct {
	all      []*Metric
	admitted *Metric
	fanouts  *Metric
	joined   *Metric
	unjoined *Metric
	denied   map[decisionKey]*Metric
	endings  [policy.NumEndings]*Metric
	charges  [policy.NumChargeSources]*Metric
	errors   [dialect.NumHows][len(errorBounds) + 1]*Metric
	input    [dialect.NumHows][2]*Metric // tokens as counted, and as the provider counts
	refusals [feedback.NumClasses]*Metric
	retries  *Metric
	repeats  *Metric
	queued   map[waitOf]*Metric // bound: -1
	reports  [2]*Metric         // that were taken, or failed
	takes    [len(takeResults)]*Metric
	settles  [len(settleResults)]*Metric
}

// flush tells the host what was counted.
func (v *VM) flush() {
	for _, m := range v.metrics.all {
		if n := m.pending; n > 0 {
			m.pending = 0
			v.host.Add(m, n)
		}
	}
}

type decisionKey struct {
	verdict   policy.Verdict
	name      string
	reason    policy.Reason
	tier      policy.Tier
	dimension policy.Dimension
	limited   bool // by a limit
}

// Names of metrics, and their labels. docs/reference.md explains each; a test compares.
const (
	metricRequests = "weir_requests_total"          // decision, reason, tier, dimension
	metricQueued   = "weir_queued_total"            // class
	metricWaits    = "weir_queue_waits_total"       // class, within
	metricRepeats  = "weir_repeated_requests_total" // none
	metricReports  = "weir_reports_total"           // result
	metricFanouts  = "weir_fanouts_total"           // decision, reason, tier, dimension
	metricTakes    = "weir_central_takes_total"     // result
	metricSettles  = "weir_central_settles_total"   // result
	metricBranches = "weir_branches_total"          // source
	metricShadow   = "weir_shadow_denials_total"    // decision, reason, tier, dimension
	metricCharges  = "weir_charges_total"           // source
	metricEndings  = "weir_endings_total"           // ending
	metricErrors   = "weir_input_errors_total"      // how, within
	metricCounted  = "weir_input_counted_total"     // how
	metricActual   = "weir_input_actual_total"      // how
	metricPanics   = "weir_panics_total"            // callback
	metricRefusals = "weir_provider_refusals_total" // class
	metricRetries  = "weir_envoy_retries_total"     // none
)

func (v *VM) countAdmitted() {
	v.count(&v.metrics.admitted, metricRequests, "decision", policy.Admit.String())
}

// A waitOf is a metric of the queue: of those that begin to wait, or of those whose wait was within a bound (RATIONALE.md, "Why are
// waits counted by bound, and not a histogram?").
type waitOf struct {
	class string
	bound int
}

// countQueued counts one that begins to wait.
func (v *VM) countQueued(w *waiter) {
	w.queued = true
	v.countWait(waitOf{w.stream.class.Name, -1})
}

// countWaited counts one that waits no more.
func (w *waiter) countWaited(wait int64) {
	if !w.queued {
		return
	}
	w.queued = false
	bound, v := 0, w.stream.vm
	for wait > fleet.WaitBounds[bound].Wait {
		bound++
	}
	v.countWait(waitOf{w.stream.class.Name, bound})
	if w.stream.plugin.policy.Reports {
		v.headcounts.add(&headcount{n: 1, of: headcounted{kind: headcountWaited, class: w.stream.headcountClass(), bound: uint8(bound)}}, maxHeadcounts)
	}
}

func (v *VM) countWait(k waitOf) {
	m := v.metrics.queued[k]
	if m == nil {
		class := ".class." + strings.ReplaceAll(k.class, ".", "_")
		name := metricQueued + class
		if k.bound >= 0 {
			name = metricWaits + class + ".within." + fleet.WaitBounds[k.bound].Name
		}
		m = v.newMetric(name)
		v.metrics.queued[k] = m
	}
	m.pending++
}

// countDecision counts what became of a request that was refused: the name, with why as labels.
func (v *VM) countDecision(d policy.Verdict, name string, r *policy.Refusal) {
	k := decisionKey{d, name, r.Reason, r.Tier, r.Dimension, r.Limit > 0}
	m := v.metrics.denied[k]
	if m == nil {
		m = v.newMetric(k.label())
		v.metrics.denied[k] = m
	}
	m.pending++
}

// countRefusal counts a refusal of a provider.
func (v *VM) countRefusal(c feedback.Class) {
	v.count(&v.metrics.refusals[c], metricRefusals, "class", c.String())
}

// countRetry counts an attempt of Envoy's after the first.
func (v *VM) countRetry() {
	v.countPlain(&v.metrics.retries, metricRetries)
}

// countRepeat counts a request that says that it was sent before.
func (v *VM) countRepeat() { v.countPlain(&v.metrics.repeats, metricRepeats) }

//go:noinline
func (v *VM) countPlain(m **Metric, name string) {
	if *m == nil {
		*m = v.newMetric(name)
	}
	(*m).pending++
}

// countReport counts a report to the fleet's controller.
func (v *VM) countReport(status int) {
	if status/100 == 2 {
		v.count(&v.metrics.reports[0], metricReports, "result", "taken")
	} else {
		v.count(&v.metrics.reports[1], metricReports, "result", "failed")
	}
}

// What becomes of what the control plane is asked for.
const (
	takeAdmitted = iota
	takeRefused
	takeFailed // nobody has answered
	takeFloor  // the floor has admitted it

	settleTaken = 0
	settleLost  = 1
)

var (
	takeResults   = [...]string{"admitted", "refused", "failed", "floor"}
	settleResults = [...]string{"taken", "lost"}
)

func (v *VM) countTake(r int) { v.count(&v.metrics.takes[r], metricTakes, "result", takeResults[r]) }

func (v *VM) countSettles(r, n int) {
	v.count(&v.metrics.settles[r], metricSettles, "result", settleResults[r])
	v.metrics.settles[r].pending += int64(n) - 1
}

// newMetric is not inlined: it would be in all that counts, and runs once for each metric.
//
//go:noinline
func (v *VM) newMetric(name string) *Metric {
	m := &Metric{Name: name}
	v.metrics.all = append(v.metrics.all, m)
	return m
}

func (k decisionKey) label() string {
	n := k.name + ".decision." + k.verdict.String() + ".reason." + k.reason.String()
	if !k.limited {
		return n
	}
	switch k.reason {
	case policy.LimitExceeded, policy.QuotaExhausted, policy.NoShare, policy.RequestTooLarge, policy.QueueFull, policy.QueueTimeout:
		n += ".tier." + k.tier.String() + ".dimension." + k.dimension.String()
	}
	return n
}

// countEnding counts how a call ended, and where the numbers that it was charged come from.
func (v *VM) countEnding(e policy.Ending, c policy.ChargeSource) {
	v.count(&v.metrics.endings[e], metricEndings, "ending", e.String())
	v.count(&v.metrics.charges[c], metricCharges, "source", c.String())
}

// count counts something with one label. (Not inlined: that would make the filter 16 KB larger.)
//
//go:noinline
func (v *VM) count(m **Metric, name, label, value string) {
	if *m == nil {
		*m = v.newMetric(name + "." + label + "." + value)
	}
	(*m).pending++
}

// errorBounds are the errors of a count, in percent, that the metric tells apart.
var errorBounds = [...]int64{1, 2, 3, 5, 10, 20, 50}

// countError counts by how much a count of the input was off. The bias is the ratio of the two sums of tokens; median and
// 95th percentile follow from how many calls were within each bound.
func (v *VM) countError(how dialect.How, counted, actual int64) {
	off := max(counted-actual, actual-counted)
	k := 0
	for k < len(errorBounds) && off*100 > actual*errorBounds[k] {
		k++
	}
	within := "more"
	if k < len(errorBounds) {
		within = strconv.FormatInt(errorBounds[k], 10)
	}
	v.count(&v.metrics.errors[how][k], metricErrors+".how."+how.String(), "within", within)
	v.count(&v.metrics.input[how][0], metricCounted, "how", how.String())
	v.metrics.input[how][0].pending += counted - 1
	v.count(&v.metrics.input[how][1], metricActual, "how", how.String())
	v.metrics.input[how][1].pending += actual - 1
}
