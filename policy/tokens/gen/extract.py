# SPDX-License-Identifier: Apache-2.0
"""Writes what the Go generator reads:  extract.py <out folder>

  o200k_base.ranks, cl100k_base.ranks   one token a line, hexadecimal, line number = rank
  classes.bin                           one byte for each code point 0..0x10FFFF

Needs  pip install tiktoken==0.14.0 bpe-openai==0.1.4  (both MIT); nothing else is downloaded.
The ranks come from the package bpe-openai and are checked against the SHA-256 in tiktoken's source.
The classes are asked of tiktoken's own regular-expression engine, so its Unicode version is the one used.
"""
import base64, gzip, hashlib, importlib.util, inspect, os, sys
import tiktoken
from tiktoken_ext import openai_public

SHA = {"o200k_base": "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
       "cl100k_base": "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7"}
UPPER, LOWER, NUMBER, SPACE, LINE_END, MARK, LETTER, SIGN = (1 << b for b in range(8))  # the bits of class.go

out = sys.argv[1]
os.makedirs(out, exist_ok=True)
data = os.path.join(os.path.dirname(importlib.util.find_spec("bpe_openai").origin), "data")
for name, sha in SHA.items():
    raw = gzip.open(os.path.join(data, name + ".tiktoken.gz")).read()
    assert hashlib.sha256(raw).hexdigest() == sha and sha in inspect.getsource(openai_public), name
    pairs = [l.split() for l in raw.splitlines() if l]
    assert [int(r) for _, r in pairs] == list(range(len(pairs)))
    with open(os.path.join(out, name + ".ranks"), "w") as f:
        for t, _ in pairs:
            f.write(base64.b64decode(t).hex() + "\n")

ranks = {bytes([i]): i for i in range(256)}
cls = bytearray(0x110000)
points = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
for pat, bit in ((r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", UPPER), (r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]", LOWER), (r"\p{N}", NUMBER),
                 (r"\s", SPACE), (r"[\r\n]", LINE_END), (r"\p{M}", MARK), (r"\p{L}", LETTER), (r"[^\s\p{L}\p{N}]", SIGN)):
    # a pattern that matches one character of the class: all others leave no token behind
    enc = tiktoken.Encoding("probe", pat_str=pat, mergeable_ranks=ranks, special_tokens={})
    hit = enc.decode(enc.encode_ordinary("".join(map(chr, points))))
    for ch in hit:
        cls[ord(ch)] |= bit
open(os.path.join(out, "classes.bin"), "wb").write(cls)
print({b: sum(1 for c in cls if c & b) for b in (1 << k for k in range(8))})
