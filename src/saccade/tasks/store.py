"""The end of a training: write the model folder, score the stored weights, write the card."""

from collections.abc import Sequence
from pathlib import Path

from saccade.config import Table
from saccade.evaluate.metrics import Score
from saccade.folder import Storage, read_folder, write_card
from saccade.pipelines.load import open_folder
from saccade.pipelines.pipeline import Report, Request
from saccade.tasks.card import card
from saccade.tasks.contract import Recipe, Task
from saccade.tokens.marks import Marks
from saccade.tokens.vocabulary import Vocabulary, read_vocabulary
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
    marks: Marks,
    storage: Storage,
    test: Sequence[Path] | None,
    report: Report,
    words: Sequence[str] | None = None,
) -> list[Score]:
    """`settings` go into config.json beside the task's and the model's name and the vocabulary's marks. Scores are of
    the stored weights, rounding included; `test` are the folders the test part is looked for in, None where there is
    none; `words` those that the model keeps to."""
    config = {"task": task.name, "name": recipe.name, "marks": marks.table(), **settings}
    tokenizer = (out / "tokenizer.json").read_text(encoding="utf-8")
    write_folder(out, config, work.model, tokenizer, storage=storage, words=words)
    scores: list[Score] = []
    if test is not None:
        folder = read_folder(out)
        pipeline = open_folder(folder)
        scores = task.evaluate(pipeline, folder, [], test, Request(), report=report)
    write_card(out, card(recipe, work.model, outcome, scores))
    return scores


def kept_vocabulary(out: Path, *, spaced: bool = True, source_bytes: bool = False) -> Vocabulary:
    """The vocabulary that a training wrote to its folder."""
    path = out / "tokenizer.json"
    return read_vocabulary(path.read_text(encoding="utf-8"), path, spaced=spaced, source_bytes=source_bytes)
