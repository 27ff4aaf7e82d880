// SPDX-License-Identifier: Apache-2.0

package mock

import (
	"bufio"
	"encoding/json"
	"net/http"
)

func (s *Server) serveReset(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", "POST")
		writeValue(w, http.StatusMethodNotAllowed, map[string]string{"error": "want POST"})
		return
	}
	s.Reset()
	writeJSON(w, http.StatusOK, []byte(`{"ok":true}`))
}

func (s *Server) serveStats(w http.ResponseWriter, r *http.Request) {
	if !onlyGet(w, r, "GET, HEAD") {
		return
	}
	if v := r.URL.Query().Get("events"); v == "" || v == "0" {
		writeValue(w, http.StatusOK, s.Stats())
		return
	}
	w.Header()["Content-Type"] = jsonType
	s.streamStats(w)
}

// streamStats writes events one by one: a full ledger is tens of megabytes.
func (s *Server) streamStats(w http.ResponseWriter) {
	events := s.Events()
	out := bufio.NewWriter(w)
	defer out.Flush()
	stats, err := json.Marshal(s.Stats())
	if err != nil {
		return
	}
	out.Write(stats[:len(stats)-1])
	out.WriteString(`,"events":[`)
	enc := json.NewEncoder(out)
	for i := range events {
		if i > 0 {
			out.WriteByte(',')
		}
		if enc.Encode(&events[i]) != nil {
			return // the caller has left
		}
	}
	out.WriteString("]}\n")
}

func onlyGet(w http.ResponseWriter, r *http.Request, allow string) bool {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return true
	}
	w.Header().Set("Allow", allow)
	writeValue(w, http.StatusMethodNotAllowed, map[string]string{"error": "method not allowed"})
	return false
}

func writeValue(w http.ResponseWriter, status int, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	// The caller may have left; there is nobody else to tell.
	_ = writeJSON(w, status, append(b, '\n'))
}
