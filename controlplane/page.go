// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	_ "embed"
	"html/template"
	"net/http"
	"time"

	"github.com/weirproxy/weir/controlplane/xds"
)

//go:embed page.html
var pageText string

var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"time": func(t time.Time) string { return t.Format(time.RFC3339) },
	"ago":  func(t time.Time) string { return time.Since(t).Round(time.Second).String() },
}).Parse(pageText))

// A view is what the page shows.
type view struct {
	Status
	Rows []row
}

// A row is one Envoy.
type row struct {
	xds.Status
	State string
}

func (s *Server) servePage(w http.ResponseWriter, _ *http.Request) {
	v := view{Status: s.Status()}
	for i := range v.Nodes {
		v.Rows = append(v.Rows, row{v.Nodes[i], v.state(&v.Nodes[i])})
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if err := page.Execute(w, v); err != nil {
		s.log.Debug("page", "error", err)
	}
}
