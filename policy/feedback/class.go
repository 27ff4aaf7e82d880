// SPDX-License-Identifier: Apache-2.0

package feedback

// A Class is what a provider's answer means for the calls after it.
type Class uint8

// Classes.
const (
	OK          Class = iota // not a refusal
	Congestion               // too fast: the rate is cut, a retry makes sense
	Overload                 // the provider is busy or broken: fewer in flight, but no lower rate
	Exhausted                // no quota left: closed until its reset, a retry is useless
	ClientError              // the request's own fault
	NumClasses               // how many there are
)

var classNames = [NumClasses]string{"ok", "congestion", "overload", "exhausted", "client_error"}

func (c Class) String() string {
	if c >= NumClasses {
		return "unknown"
	}
	return classNames[c]
}

// A Reply is what is read of a provider's answer.
type Reply struct {
	Status  int
	Headers [][2]string // names in any case; of two with one name the first counts, unless it is a list
	Body    []byte      // its first bytes as sent, not compressed: 4 KiB are plenty
	Wall    int64       // unix ns now, for times of day in an answer without a Date
}

// A Verdict is what [Classify] found.
type Verdict struct {
	Class     Class
	Dimension Dimension // which limit refused, as far as it was told; of calls in flight the rate must not be cut
	Ramp      bool      // it was the climb that was too fast, not the rate (slow_down)
	Retry     bool      // a retry may be sent, after Wait and through the limiter (mission C3)
	Told      bool      // the provider said how long to wait
	Wait      int64     // ns, in [0, MaxWait]; 0 if it was not told
}

// header is the first value of a header, without blanks around it; the name in small letters.
func (r *Reply) header(name string) string {
	for i := range r.Headers {
		if equalFold(r.Headers[i][0], name) {
			return trim(r.Headers[i][1])
		}
	}
	return ""
}

// now is the provider's time in unix ns: its Date, or else our wall clock. A Date keeps a wrong clock of ours out of every
// wait that was told as a time of day.
func (r *Reply) now() int64 {
	if t, ok := parseHTTPDate(r.header("date")); ok {
		return t
	}
	return r.Wall
}

// Date is the answer's own time in unix ns; 0 if it has none.
func (r *Reply) Date() int64 {
	t, _ := parseHTTPDate(r.header("date"))
	return t
}

// Cached says whether the answer comes from a cache, so that its limit headers are those of another call.
func (r *Reply) Cached() bool {
	if age := r.header("age"); age != "" && age != "0" {
		return true
	}
	for _, name := range [...]string{"x-cache", "cf-cache-status"} {
		if v := r.header(name); len(v) >= 3 && equalFold(v[:3], "hit") {
			return true
		}
	}
	return false
}
