// SPDX-License-Identifier: Apache-2.0

package mock

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// Mode names how limits are counted.
type Mode string

const (
	// ModeBucket refills continuously, as OpenAI and Anthropic do. It lets
	// through almost twice the limit in its first window.
	ModeBucket Mode = "bucket"
	// ModeSliding keeps an exact log: never more than the limit in any window.
	ModeSliding Mode = "sliding"
)

const (
	defaultWindow = time.Minute
	defaultEvents = 100_000
	// maxTokens bounds every count, so that sums and products cannot overflow.
	maxTokens = int64(1) << 40
)

// Config is what a mock is made from; the zero value is a mock without limits.
type Config struct {
	// RPM and TPM are the requests and tokens per Window; 0 is no limit.
	RPM, TPM int64
	// Window defaults to a minute.
	Window time.Duration
	// Mode defaults to ModeBucket.
	Mode Mode
	// Burst is the share of a bucket's limit that may come at once, as a time:
	// with Burst 1s, 600 RPM are at most 10 at once. 0 is the whole window.
	Burst time.Duration
	// PerKey gives each API key limits of its own. Limits are always per model.
	PerKey bool
	// Latency passes before the first byte of an answer.
	Latency time.Duration
	// Usage says how much output is used and how it is reported.
	Usage Usage
	// Fail lists failures at random.
	Fail []FailRule
	// Seed makes the failures repeatable.
	Seed uint64
	// Models is what GET …/models lists; any model name is served.
	Models []string
	// Events is how many events the ledger keeps: 0 is 100,000, negative none.
	Events int
	// Now is the clock of limits and ledger, time.Now if nil. Latency and delays
	// use real timers.
	Now func() time.Time
}

// settings are the parts of Config that can change at run time; immutable once
// published.
type settings struct {
	limits  limits
	latency time.Duration
	usage   Usage
	fail    []FailRule
}

func (c Config) withDefaults() Config {
	if c.Window == 0 {
		c.Window = defaultWindow
	}
	if c.Mode == "" {
		c.Mode = ModeBucket
	}
	if c.Events == 0 {
		c.Events = defaultEvents
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if len(c.Models) == 0 {
		c.Models = []string{"mock"}
	}
	return c
}

func (c Config) validate() error {
	var errs []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	check(c.RPM >= 0 && c.RPM <= maxTokens, "rpm %d: want 0 to %d", c.RPM, maxTokens)
	check(c.TPM >= 0 && c.TPM <= maxTokens, "tpm %d: want 0 to %d", c.TPM, maxTokens)
	check(c.Window > 0, "window %v: want more than 0", c.Window)
	check(c.Burst >= 0, "burst %v: want 0 or more", c.Burst)
	check(c.Latency >= 0, "latency %v: want 0 or more", c.Latency)
	check(slices.Contains([]Mode{ModeBucket, ModeSliding}, c.Mode), "mode %q: want bucket or sliding", c.Mode)
	check(c.Burst == 0 || c.Mode == ModeBucket, "burst: only a bucket has one")
	check(c.Now().Unix() > 0, "now %v: want a time after 1970", c.Now())
	errs = append(errs, c.Usage.validate())
	for _, r := range c.Fail {
		errs = append(errs, r.validate())
	}
	return errors.Join(errs...)
}

func (c Config) settings() *settings {
	return &settings{
		limits: limits{
			rpm:    newRate(c.RPM, c.Window, c.Burst),
			tpm:    newRate(c.TPM, c.Window, c.Burst),
			window: c.Window,
			burst:  c.Burst,
		},
		latency: c.Latency,
		usage:   c.Usage,
		fail:    slices.Clone(c.Fail),
	}
}
