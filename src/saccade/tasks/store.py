"""The end of a training: write the model folder, score the stored weights, write the card."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from saccade.evaluate.metrics import Score
from saccade.folder import change_config, read_folder, write_card
from saccade.pipelines.load import open_folder
from saccade.pipelines.pipeline import Report
from saccade.tasks.arithmetic import compare_arithmetic
from saccade.tasks.card import card
from saccade.tasks.contract import Prepared, Recipe
from saccade.tokens.vocabulary import Vocabulary, read_vocabulary
from saccade.train.loop import Outcome
from saccade.weights import write_folder


@dataclass(frozen=True)
class Stored:
    """What is known of a model once it is stored."""

    scores: list[Score]
    """On the test part."""
    remarks: list[str]
    """More about it, for the person who trained it."""


def store(
    recipe: Recipe, prepared: Prepared, outcome: Outcome, out: Path, report: Report, tried: Sequence[str] = ()
) -> Stored:
    """Scores are of the stored weights, rounding included. The card comes last: a folder with a card is finished.
    `tried` are remarks on the trainings before."""
    finish = prepared.finish(report) if prepared.finish else None
    names = {"task": recipe.task, "name": recipe.name, "marks": prepared.marks.table()}
    path = out / "tokenizer.json"
    tokenizer = path.read_text(encoding="utf-8") if path.exists() else None
    model, config = prepared.work.model, names | prepared.settings | (finish.settings if finish else {})
    carried = prepared.carried() if prepared.carried and recipe.card.carry_test else None
    write_folder(
        out,
        config,
        model,
        tokenizer,
        storage=prepared.storage,
        words=prepared.words,
        carried=carried,
        more=finish.files if finish else None,
    )
    scores: list[Score] = []
    arithmetic = compare_arithmetic(read_folder(out), prepared.figure) if prepared.figure else None
    if arithmetic:
        change_config(out, {"arithmetic": arithmetic})
    if prepared.test is not None:
        folder = read_folder(out)
        scores = prepared.test(open_folder(folder), folder, report)
    remarks = [*tried, *([*finish.told, *finish.beside(scores)] if finish else [])]
    write_card(out, card(recipe, model, outcome, scores, arithmetic, remarks))
    return Stored(scores, remarks)


def kept_vocabulary(out: Path, *, spaced: bool = True, source_bytes: bool = False) -> Vocabulary:
    """The vocabulary that a training wrote to its folder."""
    path = out / "tokenizer.json"
    return read_vocabulary(path.read_text(encoding="utf-8"), path, spaced=spaced, source_bytes=source_bytes)
