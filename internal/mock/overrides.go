// SPDX-License-Identifier: Apache-2.0

package mock

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	mockPrefix = "X-Mock-" // in the canonical form of http.Header
	maxDelay   = 10 * time.Minute
	maxChunks  = 100_000
	maxPadding = 1 << 30
)

// overrides are the x-mock- headers of one call; -1 stands for "not said".
type overrides struct {
	tag, code, cut, retryAfter string
	input, output, bodyBytes   int64
	latency, chunkDelay        time.Duration
	chunks, status             int
	usage                      Usage
	hasUsage, noUsage          bool
}

func (o *overrides) clear() {
	*o = overrides{input: -1, output: -1, bodyBytes: -1, latency: -1, chunkDelay: -1, chunks: -1}
}

func (o *overrides) parse(h http.Header) error {
	for name, values := range h {
		if !strings.HasPrefix(name, mockPrefix) || len(values) == 0 {
			continue
		}
		if err := o.set(name[len(mockPrefix):], values[0]); err != nil {
			return fmt.Errorf("header %s: %w", strings.ToLower(name), err)
		}
	}
	return nil
}

func (o *overrides) set(name, v string) (err error) {
	switch name {
	case "Tag":
		o.tag = v
	case "Code":
		o.code = v
	case "Retry-After":
		o.retryAfter = v
	case "Input-Tokens":
		o.input, err = parseCount(v, maxTokens)
	case "Output-Tokens":
		o.output, err = parseCount(v, maxTokens)
	case "Body-Bytes":
		o.bodyBytes, err = parseCount(v, maxPadding)
	case "Latency":
		o.latency, err = parseDelay(v)
	case "Chunk-Delay":
		o.chunkDelay, err = parseDelay(v)
	case "Chunks":
		var n int64
		n, err = parseCount(v, maxChunks)
		o.chunks = int(n)
	case "Status":
		o.status, err = parseStatus(v)
	case "Cut":
		o.cut, err = v, oneOf(v, cutHeaders, cutMiddle)
	case "Usage":
		o.hasUsage = true
		o.usage, err = ParseUsage(v)
	case "No-Usage":
		o.noUsage, err = strconv.ParseBool(v)
	default:
		err = fmt.Errorf("unknown")
	}
	return err
}

// usageOr is the usage in force for the call.
func (o *overrides) usageOr(u Usage) Usage {
	if o.hasUsage {
		u = o.usage
	}
	if o.noUsage {
		u.Report = ReportNone
	}
	return u
}

func parseCount(s string, most int64) (int64, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 || n > most {
		return 0, fmt.Errorf("%q: want a number from 0 to %d", s, most)
	}
	return n, nil
}

func parseDelay(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 || d > maxDelay {
		return 0, fmt.Errorf("%q: want a duration from 0s to %v", s, maxDelay)
	}
	return d, nil
}

func parseStatus(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < 400 || n > 599 {
		return 0, fmt.Errorf("%q: want a status from 400 to 599", s)
	}
	return n, nil
}

func oneOf(s string, allowed ...string) error {
	for _, a := range allowed {
		if s == a {
			return nil
		}
	}
	return fmt.Errorf("%q: want %s", s, strings.Join(allowed, " or "))
}
