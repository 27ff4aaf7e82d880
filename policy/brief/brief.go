// SPDX-License-Identifier: Apache-2.0

// Package brief is as much of package fmt as the filter needs for its messages. The whole of it, with the reflection that it
// brings, would be a thirtieth of the WebAssembly that each worker of each Envoy loads.
package brief

import (
	"errors"
	"strconv"
)

// Sprintf is that of fmt for the verbs %d, %q, %s, %v and %%, and for strings, ints, floats, errors and what has a String method.
func Sprintf(format string, args ...any) string {
	var b []byte
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 == len(format) {
			b = append(b, format[i])
			continue
		}
		i++
		if format[i] == '%' {
			b = append(b, '%')
			continue
		}
		text := "%!(MISSING)"
		if len(args) > 0 {
			text, args = textOf(args[0]), args[1:]
		}
		if format[i] == 'q' {
			b = strconv.AppendQuote(b, text)
		} else {
			b = append(b, text...)
		}
	}
	return string(b)
}

// Errorf is an error that says what Sprintf gives.
func Errorf(format string, args ...any) error { return errors.New(Sprintf(format, args...)) }

func textOf(arg any) string {
	switch v := arg.(type) {
	case string:
		return v
	case []byte:
		return string(v)
	case int:
		return strconv.Itoa(v)
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	case error:
		return v.Error()
	case interface{ String() string }:
		return v.String()
	}
	return "%!(UNKNOWN)"
}
