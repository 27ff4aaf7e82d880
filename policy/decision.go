// SPDX-License-Identifier: Apache-2.0

package policy

import "time"

// A Verdict is what becomes of a request.
type Verdict uint8

// Verdicts.
const (
	Admit Verdict = iota
	Deny
	Degraded // sent to a smaller model, or answered with a fixed reply
	Spilled  // sent to another provider
	numVerdicts
)

var verdictNames = [numVerdicts]string{"admit", "deny", "degrade", "spill"}

func (v Verdict) String() string { return nameOf(verdictNames[:], v) }

// A Reason says why a request was not admitted. The names are the same in replies, headers, metrics and logs.
type Reason uint8

// Reasons.
const (
	None                 Reason = iota
	LimitExceeded               // a limit does not have what the request needs, for now
	QuotaExhausted              // the same for a limit of a day or longer, and for more than a minute
	RequestTooLarge             // it asks for more than a limit ever admits
	CASContention               // too many workers at one bucket at once
	Internal                    // weir failed
	NotMetered                  // the path or upgrade cannot be metered, and the policy does not name it
	UnknownPrefix               // no provider has the path's prefix
	BadIdentity                 // an identity header came twice
	BadPath                     // the path has a dot segment that Envoy has left
	RetryBudgetExhausted        // the request tree has used up its retries
	FanoutRefused               // not all branches of a fan-out fit
	QueueFull                   // nobody else may wait
	QueueTimeout                // it has waited as long as it may, or would have to wait longer
	UnreadableBody              // the body is no JSON object, or names two models, so that neither model nor tokens can be told
	ProviderCooling             // the provider has asked to be left alone for a time
	NoShare                     // this Envoy has no part of a limit that a fleet shares
	numReasons
)

var reasons = [numReasons]struct {
	name   string
	status int
}{
	None:            {"none", 200},
	LimitExceeded:   {"limit_exceeded", 429},
	QuotaExhausted:  {"quota_exhausted", 429},
	RequestTooLarge: {"request_too_large", 413},
	CASContention:   {"cas_contention", 429},
	Internal:        {"internal", 503},
	NotMetered:      {"not_metered", 403},
	UnknownPrefix:   {"unknown_prefix", 404},
	BadIdentity:     {"bad_identity", 400},
	BadPath:         {"bad_path", 400},
	UnreadableBody:  {"unreadable_body", 400},

	QueueFull:            {"queue_full", 429},
	QueueTimeout:         {"queue_timeout", 429},
	RetryBudgetExhausted: {"retry_budget_exhausted", 429},
	ProviderCooling:      {"provider_cooling", 429},
	FanoutRefused:        {"fanout_refused", 429},
	NoShare:              {"no_share", 429},
}

func (r Reason) String() string {
	if r >= numReasons {
		return "unknown"
	}
	return reasons[r].name
}

// Status is the HTTP status that a caller gets.
func (r Reason) Status() int {
	if r >= numReasons {
		return 503
	}
	return reasons[r].status
}

// From a window and a wait of these lengths on a limit is called a quota: waiting for it makes no sense to a caller.
const (
	quotaWindow = 24 * time.Hour
	quotaWait   = time.Minute
)

// A Refusal is one limit that did not admit a request.
type Refusal struct {
	Reason    Reason
	Tier      Tier
	Dimension Dimension
	Limit     int64         // units in the window
	Burst     int64         // units of them that may come at once
	Need      int64         // units that the request asks for
	Window    time.Duration // 0 for in flight
	Remaining int64         // units left; below zero it is debt
	Wait      time.Duration // after which it would be admitted if nobody else came; exact, but for in flight a guess
	Class     bool          // others may have more: it is what the caller's class may take
}

// A Decision is the answer to a request. Refusal says why it was denied, Shadow which limit in shadow mode would have.
type Decision struct {
	Verdict Verdict
	Refusal Refusal
	Shadow  Refusal
	Part    bool  // the class's part refuses, whatever the buckets do
	Fits    int64 // of a fan-out that was refused: how many branches would be admitted
}

// inFlightWait is what a caller is told to wait for a slot in flight; nobody knows when one will be free.
const inFlightWait = time.Second

// worse says whether r decides over o: never before later, later before sooner.
func (r Refusal) worse(o Refusal) bool {
	if o.Reason == None || r.Reason == None {
		return r.Reason != None
	}
	if (r.Reason == RequestTooLarge) != (o.Reason == RequestTooLarge) {
		return r.Reason == RequestTooLarge
	}
	return r.Wait > o.Wait
}
