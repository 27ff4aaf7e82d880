// SPDX-License-Identifier: Apache-2.0

package mock

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
)

// Control is the body of POST /control, and the answer of GET. What is absent
// stays as it is.
type Control struct {
	RPM     *int64  `json:"rpm,omitempty"`
	TPM     *int64  `json:"tpm,omitempty"`
	Latency *string `json:"latency,omitempty"` // a Go duration
	Usage   *string `json:"usage,omitempty"`   // as ParseUsage
	Fail    *string `json:"fail,omitempty"`    // as ParseFail
}

// Apply changes settings at run time, all or none of them. What the limits have
// counted so far stays counted; a dimension that had no limit begins unused.
func (s *Server) Apply(c Control) error {
	s.setMu.Lock()
	defer s.setMu.Unlock()
	next := *s.settings.Load()
	rpm, tpm := next.limits.rpm.limit, next.limits.tpm.limit
	err := errors.Join(
		setCount("rpm", &rpm, c.RPM),
		setCount("tpm", &tpm, c.TPM),
		setParsed("latency", &next.latency, c.Latency, parseDelay),
		setParsed("usage", &next.usage, c.Usage, ParseUsage),
		setParsed("fail", &next.fail, c.Fail, ParseFail),
	)
	if err != nil {
		return err
	}
	next.limits = next.limits.withRates(rpm, tpm)
	s.settings.Store(&next)
	return nil
}

func setCount(name string, to, from *int64) error {
	if from == nil {
		return nil
	}
	if *from < 0 || *from > maxTokens {
		return fmt.Errorf("%s %d: want 0 to %d", name, *from, maxTokens)
	}
	*to = *from
	return nil
}

func setParsed[T any](name string, to *T, from *string, parse func(string) (T, error)) error {
	if from == nil {
		return nil
	}
	v, err := parse(*from)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	*to = v
	return nil
}

// control is the settings in force.
func (s *Server) control() Control {
	st := s.settings.Load()
	latency, usage, fail := st.latency.String(), st.usage.String(), formatFail(st.fail)
	return Control{RPM: &st.limits.rpm.limit, TPM: &st.limits.tpm.limit, Latency: &latency, Usage: &usage, Fail: &fail}
}

func (s *Server) serveControl(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPost {
		var c Control
		d := json.NewDecoder(http.MaxBytesReader(w, r.Body, 64<<10))
		d.DisallowUnknownFields()
		err := d.Decode(&c)
		if err == nil {
			err = s.Apply(c)
		}
		if err != nil {
			writeValue(w, http.StatusBadRequest, map[string]string{"error": err.Error()})
			return
		}
	} else if !onlyGet(w, r, "GET, HEAD, POST") {
		return
	}
	writeValue(w, http.StatusOK, s.control())
}
