// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/weirproxy/weir/policy"
)

// A Scenario is a policy, a timeline of requests, and what is expected of it, read from a text by [ParseScenario]. It runs on
// the production's ledger. docs/simulate.md describes the format; policy/sim/scenarios has examples.
type Scenario struct {
	File  string
	Title string // the first comment
	spec  *policy.Spec
	model string // of requests that name none
	asks  []*ask
	turns []turn
	wants []want
	ends  time.Duration // of the last thing that happens
}

// An ask is one line of requests.
type ask struct {
	line           int
	text           string
	from, every    time.Duration
	n              int // times it happens
	times          int // requests each time
	caller         policy.Caller
	model          string
	input, output  int64 // tokens; output -1: not declared
	used           int64 // tokens of output in the end; -1: as reserved
	takes          time.Duration
	ending         policy.Ending
	retry          bool
	asked, refused int
	admitted       int
	first          policy.Decision // of the first that was refused
}

// A turn is something that happens once and is no request.
type turn struct {
	line int
	at   time.Duration
	what turnKind
	spec *policy.Spec // the policy from then on
}

type turnKind uint8

const (
	change  turnKind = iota // of the policy
	restart                 // of Envoy: everything is forgotten
	crash                   // of a worker: it never says that its calls are over
)

// A ScenarioError is one thing that is wrong with a scenario.
type ScenarioError struct {
	File    string
	Line    int // from 1
	Problem string
	Hint    string // what to write instead
}

func (e *ScenarioError) Error() string {
	s := fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Problem)
	if e.Hint != "" {
		s += " (" + e.Hint + ")"
	}
	return s
}

// Bounds of a scenario: what a person can still look at.
const (
	maxRequests = 100_000
	maxLength   = 31 * 24 * time.Hour
	maxLines    = 10_000
)

// takesDefault is how long a call takes of which nothing is said.
const takesDefault = time.Second

// ParseScenario reads a scenario. The error joins a [ScenarioError] for each thing that is wrong.
func ParseScenario(file string, text []byte) (*Scenario, error) {
	p := &parser{Scenario: &Scenario{File: file}, now: newSpec(), places: map[string]int{}}
	p.lines(string(text))
	if len(p.errs) > 0 {
		return nil, errors.Join(p.errs...)
	}
	return p.Scenario, nil
}

// newSpec is a policy without limits, for one provider.
func newSpec() *policy.Spec {
	return &policy.Spec{
		APIVersion: policy.APIVersion, Trust: []string{"all"},
		Providers: map[string]policy.ProviderSpec{"api": {Cluster: "none", Dialect: "openai", Models: map[string]*policy.LimitSpec{}}},
		Limits: policy.LimitsSpec{
			Environment: map[string]*policy.EnvironmentSpec{}, Tenant: map[string]*policy.LimitSpec{},
			User: map[string]*policy.LimitSpec{}, Tool: map[string]*policy.LimitSpec{},
		},
	}
}

// clone copies a policy, so that a change of one is none of the other.
func clone(s *policy.Spec) *policy.Spec {
	b, err := json.Marshal(s) // as policy.Encode does, which is not built for the filter
	if err != nil {
		panic(err) // a spec that was read can be written
	}
	c, err := policy.Decode(b)
	if err != nil {
		panic(err)
	}
	for _, m := range []*map[string]*policy.LimitSpec{&c.Limits.Tenant, &c.Limits.User, &c.Limits.Tool} {
		if *m == nil { // JSON leaves out what is empty
			*m = map[string]*policy.LimitSpec{}
		}
	}
	if c.Limits.Environment == nil {
		c.Limits.Environment = map[string]*policy.EnvironmentSpec{}
	}
	if api := c.Providers["api"]; api.Models == nil {
		api.Models = map[string]*policy.LimitSpec{}
		c.Providers["api"] = api
	}
	return c
}
