// SPDX-License-Identifier: Apache-2.0

package tokens

// exactFamilies are the families that have a vocabulary of their own.
var exactFamilies = [numEncodings]Family{encO200k: O200k, encCl100k: Cl100k, encQwen: Qwen, encDeepSeek: DeepSeek, encMistral: Mistral}

// extra is a vocabulary that a build links if it has the tag weir_qwen, weir_deepseek or weir_mistral (`make build
// TABLES=qwen,mistral`); without it, its family is estimated. Its table has the layout of table.bin, but one border table, and no
// rank in the place of cl100k_base. That nothing is linked is known to the compiler, so a build without tags has none of it.
type extra struct {
	table   string
	slots   uint64
	longest int // bytes of a token
	rules   rules
}

// extra gives the vocabulary of e, or nil.
func (e encoding) extra() *extra {
	switch {
	case qwenLinked && e == encQwen:
		return &extra{qwenTable, qwenSlots, qwenLongest, rules{quoteFirst: '\'', quoteBehind: 0xFF, slash: '\n', fold: 0x20 * ones, oneDigit: true}}
	case deepseekLinked && e == encDeepSeek:
		return &extra{deepseekTable, deepseekSlots, deepseekLongest, rules{quoteFirst: 0xFF, quoteBehind: 0xFF, slash: '\n', fold: 0x20 * ones, numbersFirst: true}}
	case mistralLinked && e == encMistral:
		return &extra{mistralTable, mistralSlots, mistralLongest, rules{quoteFirst: 0xFF, quoteBehind: 0xFF, slash: '/', oneDigit: true}}
	}
	return nil
}

// cutExtra returns the end of the piece at i.
func (e encoding) cutExtra(s string, i int) int {
	switch e {
	case encQwen:
		return cutQwen(s, i)
	case encDeepSeek:
		return cutDeepSeek(s, i)
	case encMistral:
		return cutMistral(s, i)
	}
	panic("tokens: no such vocabulary")
}

// linked says whether this build has the vocabulary.
func (e encoding) linked() bool { return e <= encCl100k || anyLinked && e.extra() != nil }

// extrasFit says whether the tables are those that their slots belong to; the loads from them are unchecked.
func extrasFit() bool {
	return fits(qwenLinked, len(qwenTable), qwenSlots) && fits(deepseekLinked, len(deepseekTable), deepseekSlots) && fits(mistralLinked, len(mistralTable), mistralSlots)
}

func fits(linked bool, size, slots int) bool {
	return !linked || size == numBuckets+slots*8+borderSize*4
}
