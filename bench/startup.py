"""How long every command that answers takes from its start to its end, against importing torch alone."""

import os
import sys
import tempfile
from pathlib import Path
from statistics import median

from bench.console import say
from bench.machine import Machine
from bench.process import SACCADE, time_command
from bench.report import Report, Values, spread
from bench.settings import Settings

BUDGET = 0.4
"""A command may take this share of the time of importing torch."""
TORCH = "import torch"
SENTENCE = "this cat is very large"
EXAMPLES = [("cat", "cats"), ("dog", "dogs"), ("house", "houses"), ("tree", "trees")]
CLASSIFIER = Path(__file__).parent.parent / "tests" / "kept" / "classification"
"""No classifier comes with Saccade: this small one of its tests answers, unless $SACCADE_CLASSIFIER names another."""

Commands = dict[str, list[str]]
"""Words after `saccade`, by a short name."""


def compare_startup(settings: Settings) -> Report:
    rounds = settings.rounds(usual=7)
    machine = Machine(settings.threads).look("before")
    with tempfile.TemporaryDirectory() as folder:
        commands = prepare(Path(folder))
        whole = {name: [*SACCADE, *words] for name, words in commands.items()}
        whole[TORCH] = [sys.executable, "-c", TORCH]
        values: Values = {name: [] for name in whole}
        bytecode = keeping_bytecode(Path(folder))
        # Round 0 warms the disk's cache, leaves its bytecode and is not counted.
        for number in range(rounds + 1):
            for name, command in whole.items():
                seconds = time_command(command, threads=settings.threads, environment=bytecode).seconds
                say(f"round {number}/{rounds}  {name}: {seconds:.2f} s")
                if number:
                    values[name].append(seconds)
    return describe(rounds, machine, commands, values)


def keeping_bytecode(folder: Path) -> dict[str, str]:
    """Modules are compiled once, as those of an installed package are; torch's too. Python may be told not to keep any
    bytecode, and what is installed as editable would then be compiled at every start, while torch comes with its own.
    """
    return {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(folder / "bytecode")}


def prepare(folder: Path) -> Commands:
    """Every command, with what it reads and draws in this folder."""
    examples, picture = folder / "pairs.tsv", str(folder / "attention.png")
    examples.write_text("".join(f"{one}\t{many}\n" for one, many in EXAMPLES), encoding="utf-8")
    classifier = os.environ.get("SACCADE_CLASSIFIER") or str(CLASSIFIER)
    return {
        "translate": ["translate", SENTENCE],
        "translate --look": ["translate", SENTENCE, "--look", picture],
        "correct": ["correct", "Did you recieve a leter form him?"],
        "pronounce": ["pronounce", "saccade"],
        "complete": ["complete", "Once upon a time", "--max-tokens", "20", "--seed", "1"],
        "score": ["score", "Once upon a time there was a little girl."],
        "prompt": ["prompt", "--examples", str(examples), "--input", "bird"],
        "fill": ["fill", "the cat sat on the [MASK]"],
        "tag": ["tag", "The cat sat on the mat."],
        "classify": ["classify", "a film to remember", "--model", classifier],
        "run": ["run", "en-es", SENTENCE],
        "look": ["look", "en-es", SENTENCE, "-o", picture],
        "models": ["models"],
        "show": ["show", "en-es"],
        "doctor": ["doctor"],
    }


def describe(rounds: int, machine: Machine, commands: Commands, values: Values) -> Report:
    torch = median(values[TORCH])
    shares = {name: median(values[name]) / torch for name in commands}
    rows = [
        [written(words), *_seconds(values[name]), f"{shares[name]:.2f}", f"{BUDGET}"]
        for name, words in commands.items()
    ]
    rows.append([f'python -c "{TORCH}"', *_seconds(values[TORCH]), "1.00", "–"])
    over = [f"{name} ({share:.3f})" for name, share in shares.items() if share > BUDGET]
    work = (
        "Whole commands with a warm disk and all modules compiled, from the start of the process to its end, in turn "
        f"(rounds: {rounds}, after one that is not counted)."
    )
    wanted = (
        f"Wanted of every command, of those that draw a picture too: at most {BUDGET} of the time of importing torch. "
        f"Over that: {', '.join(over) or 'none'}."
    )
    return Report(
        title="Start to finish of one answer",
        about=[work, wanted, str(machine)],
        header=["command", "seconds", "min–max", "times import torch", "budget"],
        rows=rows,
        unit="seconds",
        panels={"": values},
        digits=2,
    )


def written(words: list[str]) -> str:
    """The command as a person would write it; of files only the name, since their folder is another each time."""
    told = [f'"{word}"' if " " in word else Path(word).name if os.sep in word else word for word in words]
    return f"saccade {' '.join(told)}"


def _seconds(taken: list[float]) -> list[str]:
    return [f"{median(taken):.2f}", spread(taken, 2)]
