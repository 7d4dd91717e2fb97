"""A file of real sentences, whole commands from start to end: `saccade translate` and a small CTranslate2 script."""

import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from bench.console import installed, say
from bench.machine import Machine
from bench.process import SACCADE, EngineError, measure_apart, time_command
from bench.report import Report, spread
from bench.settings import Settings
from saccade.data.text import data_folders, find, read_pairs
from saccade.evaluate.metrics import bleu
from saccade.tasks.sequence import by_source

MODEL = "en-es"
TEST = "tatoeba/eng-spa.test.tsv.gz"
MORE = ("tatoeba/eng-spa.valid.tsv.gz", "tatoeba/eng-fra.test.tsv.gz", "tatoeba/eng-fra.valid.tsv.gz")
"""The test part comes first, so that the first lines of an output can be scored; these fill the file up."""
BATCHES = (1024, 2048, 4096)
"""Sizes of its batches that CTranslate2 may choose from, in tokens."""
BEAM = 5
TOLERANCE = 3.0
"""A peer that scores so much worse does not do the same work."""


@dataclass
class Command:
    """A whole command, and what came of it."""

    program: str
    setting: str
    words: list[str]
    threads: int
    seconds: list[float] = field(default_factory=list)
    output: list[str] = field(default_factory=list)

    def run(self, given: Path) -> float:
        timed = time_command(self.words, threads=self.threads, given=given)
        self.output = timed.output.splitlines()
        return timed.seconds


@dataclass(frozen=True)
class Text:
    """The sentences, and the translations of the first of them that people wrote."""

    path: Path
    references: list[list[str]]

    def score(self, output: list[str]) -> float:
        return bleu(output[: len(self.references)], self.references).value


def compare_file(settings: Settings) -> Report:
    with tempfile.TemporaryDirectory() as folder:
        text = prepare(settings, Path(folder) / "sentences.txt")
        commands = [Command("saccade translate", "as it is", [*SACCADE, "translate"], settings.threads)]
        if installed("CTranslate2", "ctranslate2"):
            commands += tune(settings, text, Path(folder) / "ctranslate2")
        machine = Machine(settings.threads)
        for number in range(1, settings.rounds() + 1):
            place = f"round {number}/{settings.rounds()}"
            machine.look(place)
            for command in commands:
                command.seconds.append(command.run(text.path))
                say(f"{place}  {command.program}, {command.setting}: {command.seconds[-1]:.1f} s")
        return describe(settings, text, machine, commands)


def prepare(settings: Settings, path: Path) -> Text:
    """Every English sentence once, the test part first."""
    folders = data_folders(settings.data)
    sources, references = by_source(read_pairs([find(TEST, folders)]))
    lines = dict.fromkeys(sources)
    for name in MORE:
        lines |= dict.fromkeys(source for source, _ in read_pairs([find(name, folders)]))
    kept = list(lines)[: settings.sentences]
    path.write_text("".join(f"{line}\n" for line in kept), encoding="utf-8")
    return Text(path, references[: len(kept)])


def tune(settings: Settings, text: Text, folder: Path) -> list[Command]:
    """CTranslate2 in every arrangement of numbers and threads, each with the batch size that suits it best."""
    measure_apart("bench.translators.convert_file", MODEL, folder, threads=settings.threads)
    tuned = []
    for compute in ("int8", "float32"):
        for inter, intra in sorted({(1, 1), (1, settings.threads), (settings.threads, 1)}):
            tried = [_ctranslate2(folder, compute, inter, intra, tokens) for tokens in BATCHES]
            seconds = [command.run(text.path) for command in tried]
            best = seconds.index(min(seconds))
            say(f"CTranslate2, {tried[best].setting}: chosen of {', '.join(f'{taken:.1f} s' for taken in seconds)}")
            tuned.append(tried[best])
    return tuned


def _ctranslate2(folder: Path, compute: str, inter: int, intra: int, tokens: int) -> Command:
    script = [sys.executable, "-m", "bench.translators.file", str(folder), str(folder / "tokenizer.json")]
    asked = {"compute": compute, "inter": inter, "intra": intra, "tokens": tokens, "beam": BEAM}
    options = [word for name, value in asked.items() for word in (f"--{name}", str(value))]
    setting = f"{compute}, {inter} × {intra} threads, batches of {tokens} tokens"
    return Command("CTranslate2", setting, [*script, *options], intra)


def describe(settings: Settings, text: Text, machine: Machine, commands: list[Command]) -> Report:
    own = median(commands[0].seconds)
    scores = [text.score(command.output) for command in commands]
    for command, score in zip(commands, scores, strict=True):
        if score < scores[0] - TOLERANCE:
            raise EngineError(f"{command.program}, {command.setting}: BLEU {score:.1f}, not {scores[0]:.1f}: no peer")
    rows = [
        [
            f"{command.program}, {command.setting}",
            f"{median(command.seconds):.2f}",
            spread(command.seconds, 2),
            f"{median(command.seconds) / own:.2f}",
            f"{score:.2f}",
        ]
        for command, score in zip(commands, scores, strict=True)
    ]
    work = (
        f"{settings.sentences:,} English sentences (Tatoeba: the eng-spa test part, then eng-spa valid, then English "
        f"sides of eng-fra test and valid, every sentence once) translated with {MODEL}, beam {BEAM}, whole commands "
        f"from the start of the process to its end, in turn (rounds: {settings.rounds()}). CTranslate2 has the same "
        "weights, converted beforehand, and the same tokenizer; each of its arrangements runs with the batch size that "
        f"was fastest of {', '.join(map(str, BATCHES))} tokens in a trial before; its fastest row is the one that "
        "counts. “times saccade”: above 1, Saccade is faster."
    )
    search = (
        "Ranking differs: Saccade divides a text's log-probability by ((5 + n) / 6)^0.6, CTranslate2 by n^0.6, having "
        "no other form. Saccade writes at most 2 × source + 20 tokens per sentence; CTranslate2 has one limit for all, "
        "set to that of the longest sentence. BLEU is sacrebleu's (13a) on the test part, all references of a sentence."
    )
    return Report(
        title=f"A file of {settings.sentences:,} sentences",
        about=[work, search, str(machine)],
        header=["command", "seconds", "min–max", "times saccade", "BLEU"],
        rows=rows,
        unit="seconds",
        panels={"": {f"{command.program}, {command.setting}": command.seconds for command in commands}},
        digits=2,
    )
