// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"
	"time"
)

// accessLog is put into the listener, as docs/reference.md says.
const accessLog = `
          access_log:
          - name: envoy.access_loggers.stdout
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.access_loggers.stream.v3.StdoutAccessLog
              log_format:
                text_format_source:
                  inline_string: "access %RESPONSE_CODE% %FILTER_STATE(wasm.weir.decision:PLAIN)% %FILTER_STATE(wasm.weir.reason:PLAIN)% %FILTER_STATE(wasm.weir.tier:PLAIN)% %FILTER_STATE(wasm.weir.input:PLAIN)% %FILTER_STATE(wasm.weir.output:PLAIN)% %FILTER_STATE(wasm.weir.charged_output:PLAIN)%\n"`

// Envoy's log has a line for each decision, and its access log, which is written every ten seconds, the exact figures.
func TestDecisionsAreLogged(t *testing.T) {
	t.Parallel()
	s := newSplit(t, tinyPolicy(1000)+"log: {admit: warn, deny: warn, access: true}\n")
	log := s.startEnvoy("whole", func(b string) string {
		if !strings.Contains(b, "stat_prefix: weir\n") {
			t.Fatal("the bootstrap has changed")
		}
		return strings.Replace(b, "          stat_prefix: weir\n", "          stat_prefix: weir"+accessLog+"\n", 1)
	})
	send(t, s.proxy, call{tenant: "a", output: 500})
	send(t, s.proxy, call{tenant: "a", output: 5000})
	for _, want := range []string{
		"weir decision=admit status=200 request_id=", "access 200 admit - - ", " 500 500\n",
		"weir decision=deny reason=request_too_large tier=tenant dimension=tpm limit=1000 need=", "access 413 deny request_too_large tenant - - -\n",
	} {
		eventually(t, 20*time.Second, func() (bool, string) {
			return strings.Contains(log.String(), want), "not logged: " + want + "\n" + tail(log.String(), 2000)
		})
	}
}
