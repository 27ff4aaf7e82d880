// SPDX-License-Identifier: Apache-2.0

package mock

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// FailRule makes a part of the calls fail, or slow.
type FailRule struct {
	// Kind is "status", "quota" (a 429 that says the quota is used up), "reset"
	// (connection closed before the first byte), "cut" (closed in the middle of
	// the answer) or "slow".
	Kind        string
	Status      int           // of kind status
	Delay       time.Duration // of kind slow
	Probability float64       // of each call
}

// ParseFail reads rules such as "429:0.1,503:0.05,quota:0.01,reset:0.01,cut:0.01,slow:2s:0.1".
// Rules are tried in order; the first failure drawn wins, delays add up.
func ParseFail(s string) ([]FailRule, error) {
	var rules []FailRule
	for part := range strings.SplitSeq(s, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		r, err := parseRule(part)
		if err != nil {
			return nil, fmt.Errorf("fail rule %q: %w", part, err)
		}
		rules = append(rules, r)
	}
	return rules, nil
}

func parseRule(s string) (FailRule, error) {
	var r FailRule
	head, prob, ok := strings.Cut(s, ":")
	if !ok {
		return r, fmt.Errorf("want KIND:PROBABILITY")
	}
	var err error
	switch head {
	case "quota", "reset", "cut":
		r.Kind = head
	case "slow":
		r.Kind = head
		delay, rest, _ := strings.Cut(prob, ":")
		if r.Delay, err = time.ParseDuration(delay); err != nil {
			return r, fmt.Errorf("delay: %w", err)
		}
		prob = rest
	default:
		r.Kind = "status"
		if r.Status, err = strconv.Atoi(head); err != nil {
			return r, fmt.Errorf("want a status, quota, reset, cut or slow")
		}
	}
	if r.Probability, err = strconv.ParseFloat(prob, 64); err != nil {
		return r, fmt.Errorf("probability: %w", err)
	}
	return r, r.validate()
}

func (r FailRule) validate() error {
	if !(r.Probability >= 0 && r.Probability <= 1) { // written so that NaN fails
		return fmt.Errorf("probability %v: want 0 to 1", r.Probability)
	}
	switch r.Kind {
	case "quota", "reset", "cut":
	case "status":
		if r.Status < 400 || r.Status > 599 {
			return fmt.Errorf("status %d: want 400 to 599", r.Status)
		}
	case "slow":
		if r.Delay < 0 {
			return fmt.Errorf("delay %v: want 0 or more", r.Delay)
		}
	default:
		return fmt.Errorf("kind %q is unknown", r.Kind)
	}
	return nil
}

// String is the form that ParseFail reads.
func (r FailRule) String() string {
	p := strconv.FormatFloat(r.Probability, 'g', -1, 64)
	switch r.Kind {
	case "status":
		return strconv.Itoa(r.Status) + ":" + p
	case "slow":
		return "slow:" + r.Delay.String() + ":" + p
	}
	return r.Kind + ":" + p
}

// formatFail joins rules to the form that ParseFail reads.
func formatFail(rules []FailRule) string {
	parts := make([]string, len(rules))
	for i, r := range rules {
		parts[i] = r.String()
	}
	return strings.Join(parts, ",")
}
