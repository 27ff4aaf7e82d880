// SPDX-License-Identifier: Apache-2.0

package brotli

import (
	"compress/flate"
	_ "embed"
	"io"
	"strings"
	"sync"
)

//go:generate go run ./gen dictionary.bin

// packed is the dictionary of the RFC, and the transforms of its words (a prefix, a type and a suffix each, as strings with their
// lengths before them), deflated.
//
//go:embed dictionary.bin
var packed string

// A dictionary is what copies from before the beginning come from.
type dictionary struct {
	words      string
	transforms []transform
}

type transform struct {
	prefix, suffix string
	kind           byte
}

const (
	dictionarySize = 122784
	minWord        = 4
	maxWord        = 24
)

// wordBits is how many words of each length there are, in bits.
var wordBits = [maxWord + 1]uint8{4: 10, 10, 11, 11, 10, 10, 10, 10, 10, 9, 9, 8, 7, 7, 8, 7, 7, 6, 6, 5, 5}

// theDictionary is unpacked when it is used first: few streams that are no web pages use it.
var theDictionary = sync.OnceValue(func() (d dictionary) {
	all, err := io.ReadAll(flate.NewReader(strings.NewReader(packed)))
	if err != nil || len(all) < dictionarySize {
		panic("brotli: the dictionary is not there")
	}
	rest := string(all[dictionarySize:])
	d.words = string(all[:dictionarySize])
	text := func() (s string) {
		s, rest = rest[1:1+rest[0]], rest[1+rest[0]:]
		return s
	}
	for rest != "" {
		t := transform{prefix: text(), kind: rest[0]}
		rest = rest[1:]
		t.suffix = text()
		d.transforms = append(d.transforms, t)
	}
	return d
})

// Kinds of transforms. Below upperFirst so many bytes are left out at the end, above upperAll at the beginning.
const (
	upperFirst = 10
	upperAll   = 11
)

// word writes a word of the dictionary, of the length that was to be copied, with a transform.
func (r *Reader) word(id int) error {
	if r.length < minWord || r.length > maxWord {
		return ErrCorrupt
	}
	d, width := theDictionary(), wordBits[r.length]
	if id>>width >= len(d.transforms) {
		return ErrCorrupt
	}
	at := id & (1<<width - 1) * r.length
	for l := minWord; l < r.length; l++ {
		at += l << wordBits[l]
	}
	before := len(r.out)
	r.out = d.transforms[id>>width].append(r.out, d.words[at:at+r.length])
	n := len(r.out) - before
	if n > r.left {
		r.out = r.out[:before]
		return ErrCorrupt
	}
	r.left -= n
	r.total += n
	if n == 0 { // which may take no bits
		return r.spend(1)
	}
	return nil
}

func (t *transform) append(out []byte, word string) []byte {
	out = append(out, t.prefix...)
	at := len(out)
	switch {
	case t.kind < upperFirst:
		out = append(out, word[:max(len(word)-int(t.kind), 0)]...)
	case t.kind > upperAll:
		out = append(out, word[min(int(t.kind-upperAll), len(word)):]...)
	default:
		out = append(out, word...)
		for w := out[at:]; len(w) > 0; {
			if w = w[upper(w):]; t.kind == upperFirst {
				break
			}
		}
	}
	return append(out, t.suffix...)
}

// upper makes the first character upper case, or something like it, and gives its length.
func upper(w []byte) int {
	switch {
	case w[0] < 0xC0:
		if w[0] >= 'a' && w[0] <= 'z' {
			w[0] ^= 32
		}
		return 1
	case w[0] < 0xE0:
		if len(w) > 1 {
			w[1] ^= 32
		}
		return min(2, len(w))
	}
	if len(w) > 2 {
		w[2] ^= 5
	}
	return min(3, len(w))
}
