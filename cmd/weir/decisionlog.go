// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A decided is one request, as a log tells of it: a line of JSON from Envoy's access log, with the filter state that weir leaves, or
// a line that weir writes itself into Envoy's log.
type decided struct {
	at       time.Time
	duration time.Duration // 0: not known
	fields   map[string]string
}

func (d *decided) word(name string) string { return d.fields[name] }

// count is a number; false: there is none.
func (d *decided) count(name string) (int64, bool) {
	n, err := strconv.ParseInt(d.fields[name], 10, 64)
	return n, err == nil && n >= 0
}

// counted is a number, or 0.
func (d *decided) counted(name string) int64 { n, _ := d.count(name); return n }

// maxLine is the longest line of a log that is read.
const maxLine = 1 << 20

// readDecided reads a log, in the order of time. skipped is how many lines tell of no request, or not when it was.
func readDecided(in io.Reader) (all []decided, skipped int, err error) {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		line := bytes.TrimSpace(lines.Bytes())
		if len(line) == 0 {
			continue
		}
		d, ok := parseDecided(line)
		if ok && d.word("decision") != "" && !d.at.IsZero() {
			all = append(all, d)
		} else {
			skipped++
		}
	}
	if err := lines.Err(); err != nil {
		return nil, 0, fmt.Errorf("after %d lines: %w", len(all)+skipped, err)
	}
	slices.SortStableFunc(all, func(a, b decided) int { return a.at.Compare(b.at) })
	return all, skipped, nil
}

func parseDecided(line []byte) (d decided, ok bool) {
	if line[0] == '{' {
		return parseJSONLine(line)
	}
	return parseTextLine(string(line))
}

// parseJSONLine reads the fields by the names that they have in weir's own lines, with "weir." or "weir_" before them or not.
func parseJSONLine(line []byte) (d decided, ok bool) {
	var raw map[string]any
	decode := json.NewDecoder(bytes.NewReader(line))
	decode.UseNumber()
	if decode.Decode(&raw) != nil {
		return d, false
	}
	d.fields = make(map[string]string, len(raw))
	for name, v := range raw {
		text := ""
		switch v := v.(type) {
		case string:
			text = v
		case json.Number:
			text = v.String()
		}
		if text == "" || text == "-" { // what Envoy writes for what is not there
			continue
		}
		name = strings.TrimPrefix(strings.TrimPrefix(name, "weir."), "weir_")
		d.fields[name] = text
	}
	d.at = parseTime(cmp.Or(d.word("time"), d.word("start_time"), d.word("timestamp"), d.word("@timestamp")))
	if ms, err := strconv.ParseFloat(cmp.Or(d.word("duration_ms"), d.word("duration")), 64); err == nil && ms > 0 && ms < 1e12 {
		d.duration = time.Duration(ms * float64(time.Millisecond))
	}
	return d, true
}

// parseTime reads what RFC 3339 has, or seconds since 1970.
func parseTime(s string) time.Time {
	if t, err := time.Parse(time.RFC3339Nano, s); err == nil {
		return t
	}
	if f, err := strconv.ParseFloat(s, 64); err == nil && f > 0 && f < 1e11 {
		whole, part := math.Modf(f)
		return time.Unix(int64(whole), int64(part*1e9)).UTC()
	}
	return time.Time{}
}

// parseTextLine reads a line that weir writes, after whatever Envoy puts before it: first of all the time, in brackets.
func parseTextLine(line string) (d decided, ok bool) {
	before, rest, ok := strings.Cut(line, "weir decision=")
	if !ok {
		return d, false
	}
	if at, after, ok := strings.Cut(strings.TrimPrefix(before, "["), "]"); ok && after != before {
		d.at, _ = time.Parse("2006-01-02 15:04:05.999", at)
	}
	d.fields = map[string]string{}
	for rest = "decision=" + rest; rest != ""; {
		name, value, ok := strings.Cut(rest, "=")
		if !ok {
			break
		}
		if quoted, err := strconv.QuotedPrefix(value); err == nil {
			rest = strings.TrimPrefix(value[len(quoted):], " ")
			value, _ = strconv.Unquote(quoted)
		} else {
			value, rest, _ = strings.Cut(value, " ")
		}
		d.fields[name] = value
	}
	return d, true
}
