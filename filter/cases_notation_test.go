// SPDX-License-Identifier: Apache-2.0

package filter_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
)

// A fieldCase is one line of testdata/cases.jsonl: what somebody's traffic did, and what should come of it. Whatever of it is
// not known here is an error, so that no case passes because part of it was not understood.
type fieldCase struct {
	ID, Source, Basis, Kind, Note string
	AlsoSeen                      []string `json:"also_seen"`
	Input                         caseInput
	Expected                      map[string]json.RawMessage
}

type caseInput struct {
	caseRequest // of a case that is one request
	Request     *caseRequest
	Response    *caseResponse
	Sequence    []json.RawMessage
	Variants    []caseVariant
	Tier        *caseTier
	Tiers       []caseTier

	ConfigVariant string        `json:"config_variant"`
	FilterAction  string        `json:"filter_action"`
	FilterChain   []string      `json:"filter_chain"`
	Transport     string        // of no matter here: callbacks are the same
	Also          string        // that all callbacks at the end come, as they always do
	Listener      caseUnchecked // of a real Envoy, see e2e
	Route         caseUnchecked // retries are below the filter
}

// caseUnchecked is a member that only a real Envoy knows.
type caseUnchecked json.RawMessage

func (c *caseUnchecked) UnmarshalJSON(b []byte) error { *c = append((*c)[:0], b...); return nil }

type caseVariant struct {
	Body   map[string]json.RawMessage
	Expect string
}

type caseRequest struct {
	Method, Path string
	Headers      map[string]string
	Body         json.RawMessage
	BodyText     *string     `json:"body_text"`
	BodyB64      []byte      `json:"body_b64"`
	BodyChunks   []string    `json:"body_chunks"`
	BodyGen      *caseGen    `json:"body_gen"`
	BodyB64Gen   *casePacked `json:"body_b64_gen"`
}

type caseResponse struct {
	Status        int
	Headers       map[string]string
	Body          json.RawMessage
	BodyChunks    []string `json:"body_chunks"`
	BodyChunksB64 [][]byte `json:"body_chunks_b64"`
	BodyText      *string  `json:"body_text"`
	BodyB64       []byte   `json:"body_b64"`
	BodyGen       *caseGen `json:"body_gen"`
	BodySplit     string   `json:"body_split"`
	EndStream     *bool    `json:"end_stream"`
	Callbacks     []struct {
		Size int
		End  bool
	}
}

// A caseStep is one step of a sequence, with all that any operation may have.
type caseStep struct {
	T        *float64
	Op       string
	ID       string
	Priority string // the header x-priority says the same
	caseRequest
	Status         int
	Chunk          string
	ChunkB64       []byte `json:"chunk_b64"`
	End            bool
	Usage          json.RawMessage
	N              int
	Every          float64
	Steps          []json.RawMessage
	Requests       []json.RawMessage
	UsedTokens     int64    `json:"used_tokens"`
	WindowResetsAt *float64 `json:"window_resets_at"`
	Scope, Key     string
	DeltaS         float64 `json:"delta_s"`
	Name           string
	Seconds        float64

	at     float64 // when, in seconds of the case
	worker int
}

// strict decodes JSON that must have nothing unknown in it.
func strict(data []byte, to any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	return d.Decode(to)
}

// loadCases reads a file of cases.
func loadCases(t *testing.T, file string) (cases []*fieldCase) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 64<<20)
	for n := 1; lines.Scan(); n++ {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		c := new(fieldCase)
		if err := strict(lines.Bytes(), c); err != nil {
			t.Errorf("%s:%d: not the notation: %v", file, n, err)
			continue
		}
		cases = append(cases, c)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return cases
}

// unfold lists the steps with their times: what is repeated, and what comes in parallel, as single steps.
func unfold(raw []json.RawMessage, at float64) (steps []caseStep, err error) {
	for _, r := range raw {
		s := caseStep{at: at}
		if err := strict(r, &s); err != nil {
			return nil, fmt.Errorf("not the notation: %w", err)
		}
		if s.T != nil {
			s.at = *s.T
		}
		more := []caseStep{s}
		switch s.Op {
		case "repeat":
			more, err = s.repeated()
		case "parallel":
			more, err = s.parallel()
		}
		if err != nil {
			return nil, err
		}
		steps = append(steps, more...)
	}
	return steps, nil
}

func (s *caseStep) repeated() (steps []caseStep, err error) {
	for i := range s.N {
		var inner []json.RawMessage
		for _, r := range s.Steps {
			inner = append(inner, json.RawMessage(strings.ReplaceAll(string(r), "{i}", fmt.Sprint(i))))
		}
		more, err := unfold(inner, s.at+float64(i)*s.Every)
		if err != nil {
			return nil, err
		}
		steps = append(steps, more...)
	}
	return steps, nil
}

// parallel gives requests of one instant, each through another worker.
func (s *caseStep) parallel() (steps []caseStep, err error) {
	steps, err = unfold(s.Requests, s.at)
	for i := range steps {
		steps[i].worker = i
		if steps[i].Op == "" {
			steps[i].Op = "request"
		}
	}
	return steps, err
}
