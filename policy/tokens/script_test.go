// SPDX-License-Identifier: Apache-2.0

package tokens

import "testing"

func TestScripts(t *testing.T) {
	for text, want := range map[string]script{
		"éñß": scriptLatin, "ạếữ": scriptViet, "\u0301": scriptMark, "αΩ": scriptGreek, "жЯ": scriptCyrillic, "שלום": scriptHebrew, "مرحبا": scriptArabic,
		"नमस्ते": scriptHindi, "বাংলা": scriptIndic, "ภาษาไทย": scriptThai, "ひらカナ": scriptKana, "한국어": scriptHangul, "漢字𠀀": scriptHan, "😀→": scriptSymbol,
		"、。“”–": scriptPunct, "\uffff": scriptHangul, "\U0010ffff": scriptSymbol,
	} {
		for _, c := range text {
			if got, n := scriptAt(string(c), 0); got != want || n != len(string(c)) {
				t.Errorf("%q is %d, %d bytes, want %d", c, got, n, want)
			}
		}
	}
	for _, e := range scriptEnds {
		if got, _ := scriptAt(string(e.last), 0); got != e.script {
			t.Errorf("%U is %d, want %d", e.last, got, e.script)
		}
		if e.last&15 != 15 {
			t.Errorf("%U does not end a row", e.last)
		}
	}
}
