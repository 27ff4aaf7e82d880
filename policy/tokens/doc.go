// SPDX-License-Identifier: Apache-2.0

// Package tokens counts the tokens of a text as a model's provider counts them. It makes no token ids.
//
//	n := tokens.New(tokens.O200k).Count("Hello, world")
//
// A [Family] says how the tokens of a model are counted, a [Counter] counts for one family, a [Set] for all.
//
// # How exact
//
// [O200k] and [Cl100k] are the vocabularies o200k_base and cl100k_base, and are counted exactly: tests compare with
// tiktoken, and a million fuzzed strings gave no difference (gen/README.md). The exceptions are texts made for it. A string
// that is no token is taken for one with probability 2^-29, which makes one false answer in more than 1 GB of ordinary text.
// The hash has no secret, so a text can be made whose count is too low: by a factor of 16 at the most, as only pieces of up
// to 16 bytes are believed to be tokens, or of 64, as only pieces of up to 64 bytes are believed to be in the cache. And of
// one text only 512 KiB are merged, the rest counts by its length (work.go). The provider's usage settles it.
//
// Some families are exact in a build that links their vocabulary, see extra.go: checked with 100,000 fuzzed strings each.
// The other families are estimated: the pieces of o200k_base are told apart by class (words, and how rare they are; digits,
// signs, blanks, scripts), and each class counts times a factor of the family (tally.go, factors.go). The factors are fitted
// to what the families' own tokenizers count; `make tokens-report` prints the errors over texts that were not used for it.
// Each family's mean bias, median error and 95th percentile are within 2, 4 and 17 percent over 31 kinds of text, within 2, 3
// and 12 over English, code and data; a test holds that. [Other], for models of which nothing is known, is the mean of those
// with open vocabularies, and misses each of them by 4 to 9 percent.
//
// What looks like a special token counts as text. What messages and tools add is not the business of this package.
//
// # How it works
//
// Text is cut into pieces as the published patterns cut it (count.go, peek.go, cut*.go), and each piece is looked up in a
// perfect hash table of both vocabularies (table.go). Most pieces are tokens. The bytes of the others are merged by rank
// (merge.go, split.go, tree.go), in windows if they are long (windows.go); a cache has the counts of those seen lately.
//
// # Memory and speed
//
// The table adds 2 MB to the program, and as much to the memory of each virtual machine, as it is read in place; nothing
// is built at start. A Counter takes 68 KB. It allocates only if text with invalid bytes or JSON escapes needs a larger
// buffer than all before: up to 3 bytes for a byte of it. Of these buffers it has two; above 1 MiB they are given up. JSON
// strings with escapes are read in parts of 16 KiB, so that the buffer stays as small as that where a text has blanks.
//
// In nanoseconds a byte, with an empty cache, on one core of a small shared machine, natively and as WebAssembly in V8: over
// all kinds of testdata/texts.jsonl, which are short, 12 and 23; English, code and data 8 and 14; Thai, the slowest kind, 29
// and 65. An estimate takes a seventh longer than a count natively, a quarter in V8. 8 KB of English, code and data take 0.07 ms,
// 0.2 ms if nothing of the table is in the processor's caches, 0.3 ms if the Counter is new besides. Of hostile text the
// worst found is 66 and 180 (spaces), so 1 MB takes 0.1 s, as half of it is not merged. Time is linear in the length of the
// text, whatever it is. `weir bench tokens` measures it inside Envoy, with all that belongs to it: JSON escapes, and text
// nobody has seen. On a machine with much else to do, 256 KB of Go's sources, documents and data
// were counted there at 18 to 19 ns a byte, the texts of testdata at 25.
//
// In WebAssembly a call costs about as much as a look-up (its arguments go through memory), and so does a branch that is not
// foreseen. So what is used for each piece is written to be inlined (`go build -gcflags=-m`), and without branches.
//
// # Doubts
//
// The classes of characters are those of tiktoken's regular expressions, Unicode 16 (Go's own are older). Servers may use
// others; only letters and marks added since differ.
//
// Each byte that is no part of valid UTF-8 counts as one U+FFFD, as encoding/json reads it. Python and browsers write one
// for each broken sequence instead. Providers mostly refuse such bodies.
//
// A text that comes in parts ([Text]) is held where it could still change: where it has no blank, all of it.
//
// The joining of windows rests on a published result that is tested here, but not proved: a row of tokens is right if each
// two neighbours are. If the widest margin, half a window, were too narrow as well, a wrong count would not be noticed;
// 16 bytes of 1024 were enough in all tests.
//
// The table and eight bytes of text at once are read by unchecked loads (load.go). Their bounds follow from the hash, which is
// scaled to the size of the table, and from i+8 <= len(s), which each caller has checked.
package tokens

// The two steps need the Python packages that gen/README.md names.
//
//go:generate python3 gen/extract.py gen/ranks
//go:generate go run ./gen gen/ranks .
