// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
)

// star finds a key that is a bare star, which YAML reads as an alias.
var star = regexp.MustCompile(`(^|[\s{,\[])\*\s*([:,\]}\s]|$)`)

// syntaxHints says what to do about what the YAML parser says, the first that is found in its message.
var syntaxHints = []struct{ part, hint string }{
	{"tab character", "indent with blanks"},
	{`character '	'`, "indent with blanks"},
	{"reserved character", "put the value in quotes"},
	{"quoted text", "close the quotes"},
	{"escape character", `write \\ for a backslash, or use single quotes`},
	{"'}'", "check braces and commas"},
	{"']'", "check brackets and commas"},
	{"'['", "check brackets and commas"},
	{"'{'", "check braces and commas"},
	{"flow map content", "check braces and commas"},
	{"mapping value", "check the indentation; a text with a colon and a blank needs quotes"},
	{"map key-value", "check the indentation; a text that goes on after quotes needs them around all of it"},
	{"invalid key", "a key is one text"},
	{"in this context", "check the indentation"},
	{"non-map value", "check the indentation"},
}

func syntaxHint(problem, line string) string {
	switch {
	case star.MatchString(line):
		return `write "*" in quotes`
	case strings.Contains(line, "{{"):
		return "this looks like a template; a policy is read as it is"
	}
	for _, h := range syntaxHints {
		if strings.Contains(problem, h.part) {
			return h.hint
		}
	}
	return ""
}

// hinted takes the hint off the message of a type in package policy: "PROBLEM: write HINT".
func hinted(err error, text string) (problem, hint string) {
	s := err.Error()
	i := strings.LastIndex(s, ": write ")
	if i < 0 {
		return s, ""
	}
	problem, hint = s[:i], s[i+2:]
	if problem == fmt.Sprintf("%q", text) {
		problem = "unknown value " + problem
	}
	return problem, hint
}

// wanted says what to write for a value of the type.
func (r *reader) wanted(t reflect.Type) string {
	if hint := asked(t); hint != "" {
		return hint
	}
	switch t.Kind() {
	case reflect.Pointer:
		return r.wanted(t.Elem())
	case reflect.Struct:
		return "write {KEY: VALUE}, with the keys " + strings.Join(r.fieldsOf(t).names, ", ")
	case reflect.Map:
		return "write {NAME: VALUE}"
	case reflect.Slice:
		return "write a list such as [A, B]"
	default:
		return "write one value"
	}
}

// asked gives the hint of a type that reads texts: what it says of a text that no type reads.
func asked(t reflect.Type) string {
	set, _ := setterOf(reflect.New(t).Elem())
	if set == nil {
		return ""
	}
	err := set("?")
	if err == nil {
		return ""
	}
	_, hint := hinted(err, "?")
	return hint
}

// elsewhere has what gateways of other makers call a key.
var elsewhere = map[string]string{
	"requests_per_second": "rps", "requests_per_minute": "rpm", "requests_per_hour": "rph", "requests_per_day": "rpd",
	"tokens_per_minute": "tpm", "tokens_per_hour": "tph", "tokens_per_day": "tpd", "rpm_limit": "rpm", "tpm_limit": "tpm",
	"concurrency": "in_flight", "max_concurrency": "in_flight", "max_parallel_requests": "in_flight", "max_output_tokens": "max_output",
	"url": "upstream", "base_url": "upstream", "api_base": "upstream", "endpoint": "upstream", "target": "upstream",
}

// similar gives the name that was meant, if there is one for it or one is close enough.
func similar(name string, names []string) (string, bool) {
	if n := elsewhere[name]; slices.Contains(names, n) {
		return n, true
	}
	fold := func(s string) string { return strings.ReplaceAll(strings.ToLower(s), "-", "_") }
	if len(name) > 64 {
		return "", false
	}
	best, most := "", max(len(name)/3, 1)
	for _, n := range slices.Backward(names) {
		if d := distance(fold(name), fold(n)); d <= most {
			best, most = n, d
		}
	}
	return best, best != ""
}

// distance counts the letters to add, take out, change or swap with the next to make a of b.
func distance(a, b string) int {
	rows := [3][]int{make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)}
	for j := range rows[1] {
		rows[1][j] = j
	}
	for i := range len(a) {
		before, last, row := rows[0], rows[1], rows[2]
		row[0] = i + 1
		for j := range len(b) {
			change := last[j]
			if a[i] != b[j] {
				change++
			}
			row[j+1] = min(change, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		rows = [3][]int{last, row, before}
	}
	return rows[1][len(b)]
}
