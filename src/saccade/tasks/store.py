"""The end of a training: the model becomes a folder, what was stored is scored, and the card says all of it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from saccade.config import Table
from saccade.evaluate.metrics import Score
from saccade.folder import Storage, read_folder, write_card
from saccade.tasks.asked import Report, Request
from saccade.tasks.card import card
from saccade.tasks.contract import Recipe, Task
from saccade.train.loop import Outcome, Work
from saccade.weights import write_folder


def store(
    task: Task,
    recipe: Recipe,
    settings: Table,
    work: Work,
    outcome: Outcome,
    out: Path,
    *,
    storage: Storage,
    test: Sequence[Path] | None,
    report: Report,
    words: Sequence[str] | None = None,
) -> list[Score]:
    """`settings` go into config.json beside the task's and the model's name. Scores are of the stored weights, rounding
    included; `test` are the folders the test part is looked for in, None where there is none; `words` those that the
    model keeps to."""
    config = {"task": task.name, "name": recipe.name, **settings}
    tokenizer = (out / "tokenizer.json").read_text(encoding="utf-8")
    write_folder(out, config, work.model, tokenizer, storage=storage, words=words)
    scores: list[Score] = []
    if test is not None:
        folder = read_folder(out)
        pipeline: Any = task.load(folder)
        scores = task.evaluate(pipeline, folder, [], test, Request(), report=report)
    write_card(out, card(recipe, work.model, outcome, scores))
    return scores
