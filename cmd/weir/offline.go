// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"crypto/rand"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/weirproxy/weir/filter"
	"github.com/weirproxy/weir/policy"
	"github.com/weirproxy/weir/policy/policytest"
	"github.com/weirproxy/weir/policyfile"
)

// An offline runs the filter on this machine's own processor, with nothing behind it: the clock stands still, and no request is
// ever answered.
type offline struct {
	*policytest.Store
	policy *policyfile.Result
	vm     *filter.VM
	plugin *filter.Plugin
	seen   *filter.Considered // of the last request, if it was counted
	now    *offlineRequest
	wall   time.Time
}

// An offlineRequest is a request, and what the filter does with it.
type offlineRequest struct {
	headers    [][2]string
	body       []byte
	properties map[string]string

	buffer []byte
	sent   [][2]string // as they leave
	status int
	answer http.Header
	reply  string
}

// alone is a policy for one Envoy that has each limit for itself: nobody is there to grant shares.
func alone(r *policyfile.Result) (*policyfile.Result, error) {
	if !r.Spec.Fleet.Shares {
		return r, nil
	}
	spec, err := policy.Decode(r.JSON)
	if err != nil {
		return nil, err
	}
	spec.Fleet.Shares = false
	p, err := policy.Compile(spec)
	if err != nil {
		return nil, err
	}
	json, err := policy.Encode(spec)
	return &policyfile.Result{Spec: spec, Policy: p, JSON: json}, err
}

func newOffline(r *policyfile.Result) (*offline, error) {
	o := &offline{Store: policytest.NewStore(), policy: r, wall: time.Now()}
	o.vm = filter.NewVM(offlineHost{o})
	o.vm.Watch(func(c *filter.Considered) { o.seen = c })
	var err error
	o.plugin, err = o.vm.Configure(1, r.JSON)
	return o, err
}

// An outcome is what the filter did with a request.
type outcome struct {
	Does   string `json:"does"`             // admit, deny, queue, degrade, spill
	Status int    `json:"status,omitempty"` // of what weir answers itself; of who waits, when it has waited too long
	Reason string `json:"reason,omitempty"`
	Tier   string `json:"tier,omitempty"`

	Dimension string `json:"dimension,omitempty"`
	Limit     int64  `json:"limit,omitempty"`

	Message string `json:"message,omitempty"`

	Model    string  `json:"model,omitempty"`    // that it goes to instead
	Provider string  `json:"provider,omitempty"` // likewise
	WaitS    float64 `json:"waits_at_most_s,omitempty"`
}

// send has the filter decide on a request.
func (o *offline) send(q *offlineRequest) outcome {
	q.sent, q.buffer, q.status, q.answer, q.reply = slices.Clone(q.headers), nil, 0, http.Header{}, ""
	o.now = q
	s := o.plugin.NewStream(100)
	a := s.RequestHeaders(q.body == nil)
	if q.status == 0 && q.body != nil {
		q.buffer = slices.Clone(q.body)
		a = s.RequestBody(len(q.body), true)
	}
	switch h := q.answer.Get; {
	case q.status != 0:
		return outcome{
			Does: cmp.Or(h("x-weir-decision"), "deny"), Status: q.status, Reason: h("x-weir-reason"), Tier: h("x-weir-tier"), Dimension: h("x-weir-dimension"), Message: message(q.reply),
			Limit: max(gjson.Get(q.reply, "error.weir.limit").Int(), gjson.Get(q.reply, "weir.limit").Int()),
		}
	case a != filter.Continue && o.seen != nil:
		return outcome{Does: "queue", WaitS: o.seen.Class.Wait.Seconds()}
	case a != filter.Continue:
		return outcome{Does: "queue"}
	}
	s.ResponseHeaders(false) // in which the filter says where it went
	h := q.answer.Get
	return outcome{Does: cmp.Or(h("x-weir-decision"), "admit"), Model: h("x-weir-model"), Provider: h("x-weir-provider")}
}

// message is what a refusal says to people.
func message(reply string) string {
	return cmp.Or(gjson.Get(reply, "error.message").String(), gjson.Get(reply, "message").String())
}

// fill takes the same cost from all buckets again and again, until one has no more: that is how many there may be at once, with
// the one that was sent.
func (o *offline) fill(c *filter.Considered) (admitted int, refusal *policy.Refusal) {
	l := policy.NewLedger(o, 1)
	l.SetWall(offlineClock, o.wall.UnixNano())
	for admitted = 1; admitted < mostAtOnce; admitted++ {
		var r policy.Reservation
		d := l.Reserve(offlineClock, &c.Path, c.Cost, &r)
		switch {
		case d.Verdict != policy.Admit:
			return admitted, &d.Refusal
		case d.Shadow.Reason != policy.None:
			return admitted, &d.Shadow
		}
	}
	return admitted, nil
}

// mostAtOnce bounds how many requests are tried; the clock of all is at offlineClock, for 0 is no time.
const (
	mostAtOnce   = 10_000
	offlineClock = int64(math.MaxInt64 / 4)
)

func (q *offlineRequest) header(name string) string {
	for _, h := range q.headers {
		if h[0] == name {
			return h[1]
		}
	}
	return ""
}

// offlineHost is what the filter sees of an Envoy.
type offlineHost struct{ *offline }

func (h offlineHost) Now() int64  { return offlineClock }
func (h offlineHost) Wall() int64 { return h.wall.UnixNano() }

func (h offlineHost) RequestHeaders(to [][2]string) [][2]string { return append(to[:0], h.now.sent...) }
func (h offlineHost) SetRequestHeader(name, value string) {
	h.RemoveRequestHeader(name)
	h.now.sent = append(h.now.sent, [2]string{name, value})
}
func (h offlineHost) RemoveRequestHeader(name string) {
	h.now.sent = slices.DeleteFunc(h.now.sent, func(kv [2]string) bool { return kv[0] == name })
}
func (h offlineHost) RequestBody(from, size int) []byte {
	from = min(from, len(h.now.buffer))
	return slices.Clone(h.now.buffer[from:min(from+size, len(h.now.buffer))])
}
func (h offlineHost) SetRequestBody(b []byte) { h.now.buffer = slices.Clone(b) }

func (h offlineHost) ResponseHeaders() [][2]string         { return [][2]string{{":status", "200"}} }
func (h offlineHost) ResponseHeader(name string) string    { return h.now.answer.Get(name) }
func (h offlineHost) SetResponseHeader(name, value string) { h.now.answer.Set(name, value) }
func (h offlineHost) RemoveResponseHeader(string)          {}
func (h offlineHost) ResponseBody(int) []byte              { return nil }
func (h offlineHost) SetResponseBody([]byte)               {}

func (h offlineHost) Random(to []byte) bool {
	_, err := rand.Read(to)
	return err == nil
}
func (h offlineHost) Enter(uint32)          {}
func (h offlineHost) Resume()               {}
func (h offlineHost) SetTick(time.Duration) {}
func (h offlineHost) Post(string, string, string, []byte, time.Duration, func(int, []byte)) bool {
	return false // there is nobody to ask
}
func (h offlineHost) Property(path string) string {
	return h.now.properties[strings.ReplaceAll(path, "\x00", ".")]
}
func (h offlineHost) SetProperty(string, string) {}
func (h offlineHost) Add(*filter.Metric, int64)  {}
func (h offlineHost) Log(filter.Level, string)   {}
func (h offlineHost) Reply(status int, headers [][2]string, body []byte) {
	h.now.status, h.now.reply = status, string(body)
	for _, kv := range headers {
		h.now.answer.Add(kv[0], kv[1])
	}
}
