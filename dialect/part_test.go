// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"strings"
	"testing"
)

// A picture counts as one, whether the part that is read ends within it or behind it; a long text that only looks like one
// does not.
func TestEstimatePart(t *testing.T) {
	blob := strings.Repeat("iVBORw0K", 100_000)
	text := strings.Repeat("word and ", 100_000)
	for _, row := range []struct {
		body        string
		part        int
		least, most int64
	}{
		{`{"messages":[{"content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,` + blob + `"}}]}]}`, 500_000, perImage, perImage + 1000},
		{`{"messages":[{"content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,` + blob + `"}},{"type":"text","text":"` + text + `"}]}]}`, 1_000_000, 225_000, 230_000},
		{`{"messages":[{"content":[{"source":{"data":"` + blob + `"}},{"source":{"data":"` + blob + `"}}]}]}`, 1_200_000, 2 * perImage, 2*perImage + 2000},
		{`{"messages":[{"content":"` + blob + `"}]}`, 500_000, 200_000, 201_000},
		{`{"messages":[{"content":[{"type":"text","data":"` + text + `"}]}]}`, 500_000, 225_000, 226_000},
		{`{"a":"`, 5, 1, 2}, {``, 0, 0, 0}, {`{"url":"` + "\\", 9, 1, 4},
	} {
		part := row.body[:min(row.part, len(row.body))]
		if n := estimatePart(part, int64(len(row.body))); n < row.least || n > row.most {
			t.Errorf("%.60s…: %d tokens, want %d to %d", row.body, n, row.least, row.most)
		}
	}
}

func FuzzEstimatePart(f *testing.F) {
	f.Add(`{"data":"`+strings.Repeat("A", 2000)+`","url":"x\"`, int64(5000))
	f.Fuzz(func(t *testing.T, part string, length int64) {
		length = min(max(length, int64(len(part))), 1<<40)
		if n := estimatePart(part, length); n < 0 || n > ByLength(length).Input+perImage*int64(len(part))/leastBlob+1 {
			t.Errorf("%q of %d: %d", part, length, n)
		}
	})
}
