// SPDX-License-Identifier: Apache-2.0

package tokens

// count counts the tokens of s, which is valid UTF-8. Most pieces are found in eight bytes that are loaded once, and are
// hashed from them; the rest is cut character by character.
func (c *Counter) count(s string) int {
	total := 0
	for i := 0; i < len(s); {
		if i+8 <= len(s) {
			w := load8(s, i)
			switch n := c.rules.peek(w); {
			case n >= goesOn:
				if j := c.rules.wordEnd(s, i+8); j > 0 {
					total += c.piece(s, i, j)
					i = j
					continue
				}
			case n >= oneToken:
				total++
				i += int(n - oneToken)
				continue
			case n > 0:
				if h := hashShort(first(w, n), n); c.view.rankIn(c.view.entry(h), h) != c.view.noRank {
					total++
				} else {
					total += c.missed(s, i, i+int(n), h)
				}
				i += int(n)
				continue
			}
		}
		var j int
		if c.enc == encO200k {
			j = cutO200k(s, i)
		} else if anyLinked && c.enc != encCl100k {
			j = c.enc.cutExtra(s, i)
		} else {
			j = cutCl100k(s, i)
		}
		if j-i == 1 {
			total++
		} else {
			total += c.piece(s, i, j)
		}
		i = j
	}
	return total
}

// piece counts the tokens of the piece s[i:j].
func (c *Counter) piece(s string, i, j int) int {
	h := hash(s, i, j)
	if j-i <= wholeMax && c.view.rankIn(c.view.entry(h), h) != c.view.noRank {
		return 1
	}
	return c.missed(s, i, j, h)
}

// missed counts the tokens of a piece that is not believed to be one; h is its hash.
func (c *Counter) missed(s string, i, j int, h uint64) int {
	if j-i > cacheMax {
		return c.merged(s, i, j)
	}
	e := &c.cache[h%cacheSize]
	if *e>>8 == h>>8 && *e&0xff != 0 {
		return int(*e & 0xff)
	}
	n := c.merged(s, i, j)
	*e = h&^0xff | uint64(n)
	return n
}
