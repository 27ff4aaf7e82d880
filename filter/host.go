// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"time"

	"github.com/weirproxy/weir/policy"
)

// A Host is what the filter needs of Envoy. Calls about headers, bodies and properties mean the stream whose callback is
// running. Bodies, headers of answers, properties and values of shared data lie in memory that is the filter's until the callback ends, headers
// of requests in memory that is until the stream is done: what is kept of them longer is copied.
type Host interface {
	policy.Store // shared data

	Now() int64  // ns of a monotonic clock that all VMs of the process share
	Wall() int64 // ns since 1970, for what callers are told, and for windows that begin at midnight

	RequestHeaders(to [][2]string) [][2]string // in the memory of to, if that is large enough
	SetRequestHeader(name, value string)
	RemoveRequestHeader(name string)
	RequestBody(from, size int) []byte // size bytes of what is buffered, or of the chunk that is passing
	SetRequestBody(body []byte)        // instead of what is buffered

	ResponseHeaders() [][2]string
	ResponseHeader(name string) string // one of them, empty if it is not there
	SetResponseHeader(name, value string)
	RemoveResponseHeader(name string)
	ResponseBody(size int) []byte
	SetResponseBody(chunk []byte) // instead of the chunk that is passing

	Random(to []byte) bool // bytes that nobody can guess

	Enter(stream uint32)     // host calls are about that stream from now on, until the callback ends
	Resume()                 // lets its request go, which was paused
	SetTick(d time.Duration) // how often [VM.Tick] is called; whole milliseconds

	Property(path string) string    // the names of its path with zero bytes between; empty if it is not there
	SetProperty(name, value string) // of the stream, for Envoy's access log: wasm.NAME of its filter state
	Reply(status int, headers [][2]string, body []byte)

	// Post sends a body to a path of a cluster. answer is called once, later: with status 0 if none came in time. false: the
	// cluster is not there, and answer is not called.
	Post(cluster, path, contentType string, body []byte, timeout time.Duration, answer func(status int, body []byte)) bool

	Add(m *Metric, n int64) // adds to a counter; n is above 0
	Log(level Level, message string)
}

// An Action is what Envoy does after a callback.
type Action uint8

// Actions, by their numbers for Envoy.
const (
	Continue Action = iota
	Pause           // hold headers or buffer the body until a later callback continues
	HoldBack        // let no more of the body come than fits, until a later callback continues
)

// A Level is how bad a log message is.
type Level uint8

// Levels.
const (
	Info Level = iota
	Warn
	Error
	Debug
)

// A Metric is a counter with a fixed name. Labels are part of the name, as Envoy's stats have none; the bootstrap's
// stats_tags make labels of them.
type Metric struct {
	Name string
	ID   uint32 // the host's, 0 before the first use

	pending int64 // counted, and not told the host yet
}
