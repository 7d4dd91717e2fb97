"""Programs side by side: every setting is measured once a round, and of a program's settings the best one counts."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

from bench.console import say
from bench.machine import Machine
from bench.process import measure_apart
from bench.report import spread
from bench.roofline import FLOAT32, INT8, INT8_WIDENED, INT16, Numbers
from bench.settings import Settings
from saccade import native
from saccade.runtime.contract import How
from saccade.runtime.open import Part, choose

OWN = "saccade"
"""The program that ratios are counted from."""
DEFAULT: How = "int8"
"""What ratios are counted from."""
WHY_DEFAULT = (
    "int8 is the default of models that lose nothing by it on their validation part, as all bundled ones that run on "
    "the kernels; weights that were never validated run in int16."
)
CTRANSLATE2, HUGGING_FACE = "CTranslate2", "Hugging Face"


@dataclass(frozen=True)
class Contestant:
    """A program with settings; of the settings of one program the best counts, in each kind of work anew."""

    program: str
    setting: str
    module: str
    arguments: tuple[str, ...]
    threads: int
    numbers: Numbers = FLOAT32


Measured = dict[tuple[str, str, Contestant], list[float]]
"""By size, kind of work and contestant, one figure a round: less is better."""
Best = dict[str, tuple[Contestant, list[float]]]
"""Of every program its best setting, and what it took."""


def own_settings(
    module: str, config: Part, hows: Sequence[How], arguments: Sequence[str], threads: int
) -> Iterator[Contestant]:
    """Saccade in each of these ways, the first being its default; several may come to the same, which is left out."""
    seen: set[tuple[str, How]] = set()
    for how in hows:
        choice = choose((config,), how)
        if (choice.engine, choice.how) in seen:
            continue
        program = f"{OWN} {choice.how}" if seen else OWN
        seen.add((choice.engine, choice.how))
        asked = (*arguments, "--how", how)
        yield Contestant(program, f"{choice.engine}, {choice.how}", module, asked, threads, own_numbers(choice.how))


def own_numbers(how: How) -> Numbers:
    library = native.kernels()
    widened = library is None or not library.multiplies_bytes()
    return {"exact": FLOAT32, "int16": INT16, "int8": INT8_WIDENED if widened else INT8}[how]


def peer_settings(program: str, module: str, arguments: Sequence[str], threads: int) -> Iterator[Contestant]:
    """A program in float32 and in int8, both on one thread and on all."""
    for compute, numbers in (("float32", FLOAT32), ("int8", INT8)):
        for count in thread_counts(threads):
            asked = (*arguments, "--compute", compute)
            yield Contestant(program, f"{compute}, threads: {count}", module, asked, count, numbers)


def thread_counts(threads: int) -> list[int]:
    """A small piece of work may be done faster by one thread than by all."""
    return sorted({1, threads})


def measure(settings: Settings, contestants: Mapping[str, Sequence[Contestant]]) -> tuple[Machine, Measured]:
    """Every contestant of every size once a round, in turn, each in a process of its own."""
    machine = Machine(settings.threads)
    measured: Measured = {}
    for number in range(1, settings.rounds() + 1):
        place = f"round {number}/{settings.rounds()}"
        machine.look(place)
        for size, ours in contestants.items():
            for one in ours:
                found = measure_apart(one.module, size, "--calls", settings.calls, *one.arguments, threads=one.threads)
                add_figures(measured, size, one, found["figures"])
                figures = " / ".join(f"{figure:,.0f}" for figure in found["figures"].values())
                say(f"{place}  {size} {found['engine']}: {figures}")
    return machine, measured


def add_figures(measured: Measured, size: str, one: Contestant, figures: Mapping[str, float]) -> None:
    """An engine may do a kind of work in several ways, named after a semicolon; each counts as another setting."""
    for name, figure in figures.items():
        work, _, way = name.partition("; ")
        played = replace(one, setting=f"{one.setting}, {way}") if way else one
        measured.setdefault((size, work, played), []).append(figure)


def best_settings(measured: Measured, size: str, work: str) -> Best:
    best: Best = {}
    for (measured_size, measured_work, one), taken in measured.items():
        if (measured_size, measured_work) != (size, work):
            continue
        if one.program not in best or median(taken) < median(best[one.program][1]):
            best[one.program] = (one, taken)
    return best


def cells(taken: Sequence[float], own: Sequence[float], digits: int = 1) -> list[str]:
    """The median, its spread, and how many times Saccade's it is."""
    middle = median(taken)
    return [f"{middle:,.{digits}f}", spread(taken, digits), f"{middle / median(own):.2f}"]


def share(least: float | None, taken: Sequence[float]) -> str:
    """What the machine's limit would allow, of what was taken."""
    return "–" if least is None else f"{least / median(taken):.0%}"
