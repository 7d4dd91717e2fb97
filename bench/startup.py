"""How long one sentence takes from the start of `saccade translate` to its end, against importing torch alone."""

import sys
from statistics import median

from bench.console import say
from bench.machine import Machine
from bench.process import SACCADE, time_command
from bench.report import Report, spread
from bench.settings import Settings

SENTENCE = "this cat is very large"
COMMANDS = {
    f'saccade translate "{SENTENCE}"': [*SACCADE, "translate", SENTENCE],
    'python -c "import torch"': [sys.executable, "-c", "import torch"],
}


def compare_startup(settings: Settings) -> Report:
    rounds = settings.rounds(usual=7)
    machine = Machine(settings.threads).look("before")
    values: dict[str, list[float]] = {name: [] for name in COMMANDS}
    # Round 0 warms the disk's cache and is not counted.
    for number in range(rounds + 1):
        for name, command in COMMANDS.items():
            seconds = time_command(command, threads=settings.threads).seconds
            say(f"round {number}/{rounds}  {name}: {seconds:.2f} s")
            if number:
                values[name].append(seconds)
    torch = median(list(values.values())[1])
    rows = [
        [name, f"{median(taken):.2f}", spread(taken, 2), f"{median(taken) / torch:.2f}"]
        for name, taken in values.items()
    ]
    work = (
        "Whole commands with a warm disk, from the start of the process to its end, in turn "
        f"(rounds: {rounds}, after one that is not counted)."
    )
    return Report(
        title="Start to finish of one sentence",
        about=[work, str(machine)],
        header=["command", "seconds", "min–max", "times import torch"],
        rows=rows,
        unit="seconds",
        panels={"": values},
        digits=2,
    )
