// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"embed"
	"encoding/json"
	"net/http"
	"path"
)

// RATIONALE.md: "Why is the page not made by the server?"
//
// The page is some files, which show what [Server.serveEvents] says. Nothing of it is written by the server, so no name that comes
// from elsewhere is ever taken for HTML.
//
//go:embed page
var pageFiles embed.FS

// pageTypes are the types of the page's files, by their endings. What a browser would not take for what it is, it does not run.
var pageTypes = map[string]string{
	".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8",
	".svg": "image/svg+xml",
}

// pageSecurity lets a page load scripts, styles and data from here, and nothing from anywhere else. Nothing in it is inline.
const pageSecurity = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// routePage adds the page and what it asks for.
func (s *Server) routePage(m *http.ServeMux) {
	m.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) { servePageFile(w, r, "index.html") })
	m.HandleFunc("GET /page/{file}", func(w http.ResponseWriter, r *http.Request) { servePageFile(w, r, r.PathValue("file")) })
	m.HandleFunc("GET /api/events", s.serveEvents)
	m.HandleFunc("GET /api/history", s.serveHistory)
	m.HandleFunc("GET /api/envoys/{id}", s.serveEnvoy)
	m.HandleFunc("GET /api/search", s.serveSearch)
}

func servePageFile(w http.ResponseWriter, r *http.Request, name string) {
	b, err := pageFiles.ReadFile(path.Join("page", path.Base(name)))
	typ := pageTypes[path.Ext(name)]
	if err != nil || typ == "" {
		http.NotFound(w, r)
		return
	}
	h := w.Header()
	h.Set("Content-Type", typ)
	h.Set("Content-Security-Policy", pageSecurity)
	h.Set("Referrer-Policy", "no-referrer")
	_, _ = w.Write(b) // who has gone needs none
}

// answerJSON answers with a value.
func (s *Server) answerJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		s.log.Debug("answer", "error", err)
	}
}
