"""Accuracy against the number of examples: measured, printed as a table or JSON, and drawn."""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from saccade.cli.progress import progress_bar
from saccade.cli.start import starting
from saccade.errors import WrongUse

if TYPE_CHECKING:
    from saccade.data.text import Pair
    from saccade.evaluate.curve import Point
    from saccade.folder import ModelFolder
    from saccade.pipelines.completer import Completer
    from saccade.pipelines.program import Program
    from saccade.runtime.contract import How

COUNTS = (0, 1, 2, 4, 8)
"""Default numbers of examples in a prompt."""
PICTURES = (".png", ".svg")


def load_language_model(model: str, how: "How | None") -> "tuple[Completer, ModelFolder]":
    with starting():
        from saccade.folder import read_folder
        from saccade.pipelines.completer import Completer
        from saccade.pipelines.load import model_path, open_folder

        folder = read_folder(model_path(model))
        pipeline = open_folder(folder, how)
    if not isinstance(pipeline, Completer):
        raise WrongUse(f"{model} is no language model: saccade models tells what each is for")
    return pipeline, folder


def measure(
    program: "Program",
    examples: "Sequence[Pair]",
    tests: "Sequence[Pair]",
    counts: Sequence[int],
    output: Path | None,
    format: str,
) -> int:
    """Accuracy of a program on its test queries."""
    with progress_bar("testing") as bar:
        points = program.test(examples, tests, counts, bar)
    if format == "json":
        for point in points:
            print(json.dumps(point.record()))
    else:
        print(f"{'k':>3}  {'right':>13}  {'accuracy':>8}  95 % interval")
        for point in points:
            right = f"{point.right} of {point.asked}"
            low, high = point.interval
            print(f"{point.k:>3}  {right:>13}  {point.accuracy:>6.1f} %  {low:.1f} to {high:.1f} %")
    _tell_fewer({"": points})
    _draw({"accuracy": points}, output, title="right answers against examples in the prompt")
    return 0


def measure_families(
    completer: "Completer",
    folder: "ModelFolder",
    counts: Sequence[int],
    data: Path | None,
    output: Path | None,
    format: str,
) -> int:
    """Accuracy on held-out questions of the families of the recipe `prompts`."""
    from saccade.data.prompts import read_words
    from saccade.data.text import data_folders
    from saccade.tasks.prompting import LOOKUP, MEAN, PromptsConfig, family_curves

    trained = folder.config.settings.get("data")
    if isinstance(trained, dict) and trained.get("kind") == "prompts":
        config = PromptsConfig.read(trained, where=str(folder.path / "config.json"))
    else:
        config = PromptsConfig()  # another language model is asked the same questions
    words = read_words(data_folders(data))
    with progress_bar("asking the families") as bar:
        curves = family_curves(completer, config, words, bar, sorted(set(counts)))
    if format == "json":
        for family, points in curves.items():
            for point in points:
                print(json.dumps({"family": family} | point.record()))
    else:
        print(f"{'':9}" + "".join(f"{f'k = {point.k}':>16}" for point in curves[MEAN]))
        for family, points in curves.items():
            print(f"{family:9}" + "".join(f"{_cell(point):>16}" for point in points))
        print(f"right answers in % (95 % interval), {config.questions} questions each; the mean is without {LOOKUP}")
    _tell_fewer(curves, mean=MEAN)
    title = f"{folder.config.name or folder.path.name}: held-out questions by family"
    _draw(curves, output, title=title, mean=MEAN, apart=LOOKUP)
    return 0


def _cell(point: "Point") -> str:
    low, high = point.interval
    return f"{point.accuracy:.1f} ({low:.0f}–{high:.0f})"


def _tell_fewer(curves: "Mapping[str, Sequence[Point]]", *, mean: str | None = None) -> None:
    """Report prompts with fewer examples than the table says."""
    sys.stdout.flush()
    for name, points in curves.items():
        for point in points:
            if point.examples < point.k and name != mean:
                where = f"{name} at k = {point.k}" if name else f"k = {point.k}"
                print(f"saccade: {where}: only {point.examples:.1f} examples fit, on average", file=sys.stderr)


def _draw(
    curves: "Mapping[str, Sequence[Point]]", output: Path | None, *, title: str, mean: str = "", apart: str = ""
) -> None:
    if output is not None:
        from saccade.study.prompts import draw_curves

        draw_curves(curves, output, title=title, mean=mean, apart=apart)
        print(f"saccade: drew {output}", file=sys.stderr)
