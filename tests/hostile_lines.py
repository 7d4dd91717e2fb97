"""Hostile lines through every verb that answers line by line: as many lines come out as go in, and nothing breaks.

python tests/hostile_lines.py                 # 300 lines
python tests/hostile_lines.py --lines 20000   # the long form
"""

import argparse
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

VERBS: dict[str, list[str]] = {
    "translate": ["translate"],
    "translate, recurrent": ["translate", "--model", "en-es-rnn", "--beam", "1"],
    "translate --int8": ["translate", "--int8"],
    "translate --format json": ["translate", "--format", "json"],
    "correct": ["correct"],
    "pronounce": ["pronounce"],
    "pronounce --ipa": ["pronounce", "--ipa"],
    "fill": ["fill", "--best", "1"],
    "tag": ["tag"],
    "run tagger": ["run", "tagger"],
    "prompt": ["prompt", "poor-english", "--max-tokens", "3"],
    # The model of the line above knows 96 characters and refuses the rest; this one reads bytes.
    "prompt, stories": ["prompt", "poor-english", "--model", "stories", "--max-tokens", "3"],
}
EXPECTED = re.compile(r"saccade: (line |query |(the prompt|\d+ of \d+ prompts) would not fit )")
"""What a verb may say of a line: that it is refused, or, of a prompt, that some of its examples were left out."""
PIECES = (
    *(
        "</s>",
        "<pad>",
        "<s>",
        "[MASK]",
        "<unk>",
        "<0x0A>",
        "Ġ",
        "▁",
        "{input}",
        "{}",
        "%s",
        "$(reboot)",
        "`",
        "\\n",
        "\\",
    ),
    *("\0", "\a", "\b", "\t", "\v", "\f", "\x1b[31m", "\x7f", "\x85", "\xa0", "\u200b", "\u200d", "\u202e", "\u2028"),
    *("\u2029", "\ufeff", "\ufffd", "\ufffe", "\U0010ffff", "e\u0301" * 3, "\u0301" * 40, "ﷺ", "ß", "İ", "ı", "ſ"),
    *(
        "👩‍👩‍👧‍👦",
        "🏴󠁧󠁢󠁥󠁮󠁧󠁿",
        "猫",
        "こんにちは",
        "안녕",
        "שלום",
        "مرحبا",
        "Ж",
        "𝔘𝔫𝔦",
        "½",
        "①",
        "٣",
        "...",
        "—",
        "''",
        '"',
        "\r",
    ),
    *(
        "the cat",
        "recieve",
        "I",
        "a",
        "1e308",
        "-0",
        "NaN",
        "null",
        "1" * 30,
        "http://x.y/?a=b&c",
        "a@b.c",
        "C++",
        "don't",
    ),
)
WORDS = (
    "the cat",
    "is very large",
    "this good morning",
    "we do not know",
    "what you want",
    "recieve",
    "leter",
    "colour",
)


def hostile_line(chance: random.Random) -> bytes:
    """One line, without its end."""
    kind = chance.random()
    if kind < 0.35:
        text = "".join(chance.choice(PIECES) + chance.choice(["", " ", "  "]) for _ in range(chance.randint(0, 8)))
    elif kind < 0.7:
        words = [chance.choice(WORDS) for _ in range(chance.randint(1, 9))]
        words[chance.randrange(len(words))] += chance.choice(PIECES)
        text = " ".join(words)
    elif kind < 0.85:
        text = "".join(chr(chance.choice([chance.randrange(1, 0x300), chance.randrange(1, 0xD800)])) for _ in range(20))
    elif kind < 0.88:
        text = chance.choice(["a", "ab ", "猫", ".", " ", "é", "1"]) * chance.choice([50, 300])
    elif kind < 0.881:
        text = chance.choice(["x", "word ", "🙂"]) * 300_000
    elif kind < 0.9:
        # Half of a surrogate pair, as broken programs write it: no UTF-8.
        return b"the cat " + chr(chance.randrange(0xD800, 0xE000)).encode("utf-8", "surrogatepass") * 2
    else:
        return chance.randbytes(chance.randint(0, 30)).replace(b"\n", b"")
    return text.replace("\n", " ").encode("utf-8", "replace")


def check(verb: str, content: bytes, lines: int) -> tuple[list[str], str]:
    """What went wrong with a verb, and how it went."""
    with tempfile.TemporaryDirectory() as folder:
        source, out, err = (Path(folder) / name for name in ("in", "out", "err"))
        source.write_bytes(content)
        began = time.monotonic()
        with source.open("rb") as reading, out.open("wb") as writing, err.open("wb") as complaining:
            code = "from saccade.cli.main import main; main()"
            command = [sys.executable, "-c", code, *VERBS[verb]]
            child = subprocess.Popen(command, stdin=reading, stdout=writing, stderr=complaining)
            _, status, used = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
        said, complaints = out.read_bytes(), err.read_text("utf-8", "replace").split("\n")
    wrong = []
    if child.returncode not in (0, 1):
        wrong.append(f"exit code {child.returncode}: {complaints[-5:]}")
    if said.count(b"\n") != lines:
        wrong.append(f"{lines} lines in, {said.count(bytes([10]))} out")
    wrong += [f"said {line[:200]!r}" for line in complaints if line and not EXPECTED.match(line)][:5]
    cost = f"{time.monotonic() - began:.0f} s, {used.ru_utime:.0f} of the processor, {used.ru_maxrss // 1000} MB"
    refused = sum(line.startswith(("saccade: line ", "saccade: query ")) for line in complaints)
    return wrong, f"{lines} lines in and out, {refused} refused, {cost}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lines", type=int, default=300)
    parser.add_argument("--verbs", nargs="*", default=sorted(VERBS))
    options = parser.parse_args()
    chance = random.Random(0)
    content = b"".join(hostile_line(chance) + b"\n" for _ in range(options.lines))
    failed = 0
    for verb in options.verbs:
        wrong, how = check(verb, content, options.lines)
        print(f"{verb}: {'; '.join(wrong) or how}", flush=True)
        failed += bool(wrong)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
