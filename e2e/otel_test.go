// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

var otelBlock = regexp.MustCompile("(?s)```yaml\n(access_log:\n- name: envoy.access_loggers.open_telemetry.*?)```")

// The access log of docs/monitor.md brings a collector what was decided and charged, under OpenTelemetry's names.
func TestOpenTelemetryNames(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	got := ""
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		got += string(body)
	}))
	defer collector.Close()
	page, err := os.ReadFile("../docs/monitor.md")
	if err != nil {
		t.Fatal(err)
	}
	block := otelBlock.FindStringSubmatch(string(page))
	if block == nil {
		t.Fatal("docs/monitor.md has no such access log")
	}
	host, port, _ := net.SplitHostPort(collector.Listener.Addr().String())
	log := "\n          " + strings.ReplaceAll(strings.TrimSpace(strings.ReplaceAll(block[1], "127.0.0.1:4318", host+":"+port)), "\n", "\n          ") + "\n"
	cluster := `  clusters:
  - name: otel_collector
    connect_timeout: 1s
    load_assignment:
      cluster_name: otel_collector
      endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: ` + host + `, port_value: ` + port + `}}}}]}]
`
	s := newSplit(t, tinyPolicy(1000)+"log: {access: true}\n")
	s.startEnvoy("whole", func(b string) string {
		if !strings.Contains(b, "          stat_prefix: weir\n") || !strings.Contains(b, "\n  clusters:\n") {
			t.Fatal("the bootstrap has changed")
		}
		b = strings.Replace(b, "          stat_prefix: weir\n", "          stat_prefix: weir"+log, 1)
		return strings.Replace(b, "  clusters:\n", cluster, 1)
	})
	send(t, s.proxy, call{tenant: "a", output: 500})
	send(t, s.proxy, call{tenant: "a", output: 5000})
	// Strings of a protobuf message lie in it as they are; between a name and its value there are a few bytes of lengths.
	for _, want := range []string{
		`gen_ai\.provider\.name[^a-z]{1,6}openai`, `gen_ai\.request\.model[^a-z]{1,6}gpt-4o`, `gen_ai\.usage\.output_tokens[^0-9a-z]{1,6}500`,
		`gen_ai\.request\.max_tokens[^0-9a-z]{1,6}500`, `weir\.decision[^a-z]{1,6}deny`, `weir\.reason[^a-z]{1,6}request_too_large`, `http\.response\.status_code[^0-9a-z]{1,6}413`,
	} {
		re := regexp.MustCompile(`(?s)` + want)
		eventually(t, 20*time.Second, func() (bool, string) {
			mu.Lock()
			defer mu.Unlock()
			return re.MatchString(got), "the collector was not told " + want
		})
	}
}
