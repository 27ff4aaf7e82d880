// SPDX-License-Identifier: Apache-2.0

package mock

import (
	"bufio"
	"flag"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the answers in testdata")

// Each file is a dialogue with a fresh mock of 5 requests and 1,000 tokens a
// minute whose clock stands still: requests, each with its answer below "----".
// A new file is a new test; -update writes the answers.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := runDialogue(t, string(data))
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if got != string(data) && !*update {
				t.Errorf("got\n%s\nwant\n%s", got, data)
			}
		})
	}
}

func runDialogue(t *testing.T, data string) string {
	s, _ := newMock(t, Config{RPM: 5, TPM: 1000, Models: []string{"large", "small"}})
	var out []string
	for _, block := range strings.Split(data, "\n====\n") {
		request, _, _ := strings.Cut(block, "\n----")
		request = strings.TrimRight(request, "\n")
		out = append(out, request+"\n----\n"+exchange(t, s, request))
	}
	return strings.Join(out, "\n====\n")
}

// exchange sends one request (a line with method and path, header lines, an
// empty line, a body) and shows the answer.
func exchange(t *testing.T, s *Server, request string) string {
	head, body, _ := strings.Cut(request, "\n\n")
	sc := bufio.NewScanner(strings.NewReader(head))
	sc.Scan()
	method, path, ok := strings.Cut(sc.Text(), " ")
	if !ok {
		t.Fatalf("want METHOD PATH, got %q", sc.Text())
	}
	var headers []string
	for sc.Scan() {
		headers = append(headers, sc.Text())
	}
	return show(do(s, method, path, body, headers...))
}

func show(w *httptest.ResponseRecorder) string {
	var lines []string
	for name, values := range w.Header() {
		lines = append(lines, strings.ToLower(name)+": "+strings.Join(values, ", "))
	}
	slices.Sort(lines)
	return fmt.Sprintf("%d\n%s\n\n%s", w.Code, strings.Join(lines, "\n"), w.Body)
}
