"""Translation outside its own test part: other kinds of text, paragraphs, names, other ways to type.

Validation parts are used for all but the rows marked "test", so that nothing is chosen on a test part.
"""

import csv
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bench.console import say
from bench.report import Report
from bench.settings import Settings
from saccade.data.exchange import invented_name
from saccade.data.sources import as_sources, read_held_out
from saccade.data.text import Pair, data_folders, find, read_pairs
from saccade.data.variants import lower, upper, without_apostrophes, without_final_mark
from saccade.evaluate.metrics import bleu, chrf
from saccade.folder import read_folder
from saccade.pipelines.load import load, model_path
from saccade.pipelines.translator import Translation, Translator
from saccade.tasks.sequence import by_source
from saccade.tasks.translation import PairsConfig

COPIED = 300
"""Pairs with something to copy."""
TYPED = 300
"""Pairs that are typed in other ways."""
PARAGRAPHS = 200
KEPT = 1 / 3
"""A sentence is kept if its translation has at least this share of the reference's length."""
_COPY = re.compile(r"\b(?:[A-Z][a-z]{2,}|\d+)\b")


def compare_elsewhere(settings: Settings, model: str = "en-es") -> Report:
    folders = data_folders(settings.data)
    translator = load(model)
    assert isinstance(translator, Translator)
    data = PairsConfig.read(read_folder(model_path(model)).table("data"), where=model)
    held = {source.label: read_held_out(source, folders) for source in as_sources(data.valid)}
    tests = {_label(source.file): source.paths(folders) for source in as_sources(data.test) if settings.tests}
    rows, values = [], {}
    for name, pairs in {
        **{f"{name}, validation": pairs for name, pairs in held.items()},
        **{f"{name}, test": read_pairs(paths) for name, paths in tests.items()},
    }.items():
        sources, references = by_source(pairs)
        outputs = [answer.text for answer in _translate(translator, sources)]
        scores = bleu(outputs, references).value, chrf(outputs, references).value
        published = _published(name, find("mt_tests/published_scores.tsv", folders))
        rows.append([name, f"{scores[0]:.1f} BLEU", f"{scores[1]:.1f} chrF", published])
        values[name] = [scores[0]]
        say(" ".join(rows[-1]))
    pairs = [pair for some in held.values() for pair in some]
    rows += [_paragraphs(translator, pairs), _names(translator, pairs), *_typed(translator, pairs)]
    return Report(
        title=f"{model} on text from elsewhere",
        about=["Beam search as by default, all references. Rows without “test” are of validation parts."],
        header=["text", "figure", "", "published"],
        rows=rows,
        unit="BLEU",
        panels={"": values},
        digits=1,
    )


def _translate(translator: Translator, texts: Sequence[str]) -> list[Translation]:
    return translator(list(texts))


def _label(file: str) -> str:
    """`mt_tests/en-es.flores-dev.tsv.gz` -> `flores-dev`."""
    folder, _, name = file.rpartition("/")
    return name.removesuffix(".gz").removesuffix(".tsv").split(".")[1] if folder == "mt_tests" else folder


def _published(name: str, path: Path) -> str:
    with path.open(encoding="utf-8", newline="") as file:
        found = [row for row in csv.DictReader(file, delimiter="\t") if f"{row['test']}, test" == name]
    wanted = ("argos", "opusmt", "bergamot-tiny")
    return ", ".join(f"{row['system']} {row['BLEU']}" for row in found if row["system"] in wanted)


def _paragraphs(translator: Translator, pairs: Sequence[Pair]) -> list[str]:
    """Three sentences on a line: how many lines keep all of them."""
    chosen = _some([pair for pair in pairs if pair[0].rstrip()[-1:] in ".!?"], 3 * PARAGRAPHS)
    threes = [chosen[n : n + 3] for n in range(0, len(chosen) - 2, 3)]
    found = _translate(translator, [" ".join(source for source, _ in three) for three in threes])
    kept = 0
    for three, translation in zip(threes, found, strict=True):
        ends = np.cumsum([len(source) + 1 for source, _ in three])
        written = [0, 0, 0]
        for sentence in translation.sentences:
            written[min(2, int(np.searchsorted(ends, sentence.source[0], side="right")))] += (
                sentence.target[1] - sentence.target[0]
            )
        kept += all(length >= KEPT * len(target) for length, (_, target) in zip(written, three, strict=True))
    return ["paragraphs of three sentences", f"{100 * kept / len(threes):.1f} %", "all sentences kept", ""]


def _names(translator: Translator, pairs: Sequence[Pair]) -> list[str]:
    """A name or a number that both sides have, exchanged for one that nobody has seen: how often it is copied."""
    random, changed = np.random.default_rng(1), []
    for source, target in _some(pairs, len(pairs)):
        shared = [word for word in _COPY.findall(source)[1:] if source.count(word) == target.count(word) == 1]
        if shared and len(changed) < COPIED:
            word = shared[-1]
            other = str(random.integers(10 ** len(word))) if word.isdigit() else invented_name(word, random)
            changed.append((re.sub(rf"\b{word}\b", other, source), other))
    found = _translate(translator, [source for source, _ in changed])
    right = sum(other in answer.text for answer, (_, other) in zip(found, changed, strict=True))
    return ["unknown names, numbers", f"{100 * right / len(changed):.1f} %", f"copied right, of {len(changed)}", ""]


def _typed(translator: Translator, pairs: Sequence[Pair]) -> list[list[str]]:
    """chrF that is lost, case ignored, where a text is typed in another way."""
    ways: dict[str, Callable[[Pair], Pair]] = {
        "upper case": lambda pair: (upper(pair[0]), pair[1]),
        "lower case, no marks": lambda pair: (lower(without_apostrophes(without_final_mark(pair)[0])), pair[1]),
        "no apostrophes": lambda pair: (without_apostrophes(pair[0]), pair[1]),
        "no final mark": without_final_mark,
    }
    rows = []
    for name, change in ways.items():
        differ = [(pair, change(pair)) for pair in pairs if change(pair)[0] != pair[0]]
        chosen = _some(differ, TYPED)
        before, after = (
            _loose([answer.text for answer in _translate(translator, [pair[0] for pair in part])], part)
            for part in ([pair for pair, _ in chosen], [pair for _, pair in chosen])
        )
        rows.append([f"typed: {name}", f"{after - before:+.1f} chrF", f"{before:.1f} -> {after:.1f}", ""])
    return rows


def _loose(outputs: Sequence[str], pairs: Sequence[Pair]) -> float:
    """chrF without case and without the marks that open and close a sentence."""
    bare = [text.strip(" .!?¿¡").lower() for text in outputs]
    return chrf(bare, [[target.strip(" .!?¿¡").lower()] for _, target in pairs]).value


def _some(items: Sequence[Any], count: int) -> list[Any]:
    """So many, drawn with a fixed seed."""
    order = np.random.default_rng(7).permutation(len(items))[:count]
    return [items[int(place)] for place in order]
