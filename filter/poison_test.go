// SPDX-License-Identifier: Apache-2.0

package filter_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/weirproxy/weir/filter/filtertest"
)

const poisonPolicy = `{"apiVersion":"weir/v1","trust":["all"],"output":{"reserve":"learned","default":"100"},
	"providers":{"openai":{"upstream":"http://openai.test"}},
	"limits":{"tenant":{"default":{"tpm":"100000","burst":"100%"},"teacher":{"tpm":"1000000000"}}}}`

func talk(n int, rest string) string {
	return fmt.Sprintf(`{"model":"qwen3-30b",%s"messages":[{"role":"user","content":%q}]}`, rest, words(n))
}

// teach lets a tenant have calls whose input is not what was counted.
func teach(p *filtertest.Process, tenant string, calls, sent, said, output int) {
	for range calls {
		x := p.Worker(0).Open(request("/openai/v1/chat/completions", tenant, talk(sent, "")))
		if x.Reply != nil {
			panic(x.Reply.Body)
		}
		x.Answer(200, fmt.Sprintf(`{"usage":{"prompt_tokens":%d,"completion_tokens":%d}}`, said, output))
		p.Sleep(5 * time.Second) // the limit of who teaches has room, too
	}
	p.Sleep(3 * time.Minute)
}

// A tenant whose calls are not what they look like, by whatever trick, teaches that to nobody else: neither do another's calls
// become too large for their limit, nor do long outputs of the one hold up the other.
func TestTenantsTeachOnlyThemselves(t *testing.T) {
	for _, row := range []struct{ said, output int }{{40_000, 5}, {1000, 50_000}, {10, 1}} {
		both(t, 2, poisonPolicy, func(t *testing.T, p *filtertest.Process) {
			teach(p, "pupil", 30, 200, 200, 50)
			x := p.Worker(1).Open(request("/openai/v1/chat/completions", "pupil", talk(60_000, "")))
			if x.Reply != nil {
				t.Fatalf("refused before anything was taught: %s", x.Reply.Body)
			}
			x.Answer(200, `{"usage":{"prompt_tokens":1,"completion_tokens":1}}`)
			teach(p, "teacher", 100, 1000, row.said, row.output)
			for range 3 {
				x = p.Worker(1).Open(request("/openai/v1/chat/completions", "pupil", talk(30_000, "")))
				if x.Reply != nil {
					t.Errorf("%+v: another tenant's call is refused: %s", row, x.Reply.Body)
				}
			}
		})
	}
}

// A call too large for its limit only by what was learned waits for all of it, and is not refused for good.
func TestLessonsRefuseNothingForGood(t *testing.T) {
	both(t, 1, poisonPolicy, func(t *testing.T, p *filtertest.Process) {
		teach(p, "own", 20, 1000, 4000, 5)
		x := p.Worker(0).Open(request("/openai/v1/chat/completions", "own", talk(60_000, `"max_tokens":10,`)))
		if x.Reply != nil {
			t.Errorf("refused: %s", x.Reply.Body)
		}
	})
}

// Who teaches that its tokens are fewer than they are counted sends no more for it: what no usage puts right counts in full.
func TestLessonsSaveNothing(t *testing.T) {
	both(t, 1, poisonPolicy, func(t *testing.T, p *filtertest.Process) {
		count := func(tenant string) int64 {
			x := p.Worker(0).Open(request("/openai/v1/chat/completions", tenant, talk(20_000, `"stream":true,"max_tokens":10,`)))
			x.Respond(200, false, [2]string{"content-type", "text/event-stream"})
			x.Chunk([]byte("data: {\"choices\":[{\"delta\":{\"content\":\"hello\"}}]}\n\ndata: [DONE]\n\n"), true)
			x.Close()
			return used(t, p, tenant)
		}
		want := count("honest")
		teach(p, "liar", 30, 1000, 10, 5)
		if got := count("liar"); got < want {
			t.Errorf("%d tokens count, %d without the lies", got, want)
		}
		open := 0
		for range 100 { // open at once: what is reserved for each may be too little, but not by more than a window can bear
			if p.Worker(0).Open(request("/openai/v1/chat/completions", "liar", talk(5000, `"max_tokens":10,`))).Reply == nil {
				open++
			}
		}
		if most := 2 * 100_000 / 5000; open > most {
			t.Errorf("%d calls of 5000 tokens are open, at a limit of 100000", open)
		}
	})
}
