"""The task of the second toy: trains a model with two encoders, from a table of picture files, questions and words."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import torch

from saccade.arch.encoder_decoder import EncoderDecoderConfig
from saccade.config import Record
from saccade.data.batches import SequenceBatch, collated_source, sequence_batch
from saccade.data.ragged import Ragged
from saccade.data.sampler import Sampler
from saccade.data.text import find
from saccade.evaluate.metrics import Score
from saccade.folder import ModelFolder
from saccade.models.answering import sequence_runtime
from saccade.models.encdec import build_encoder_decoder
from saccade.pipelines.pipeline import Report, Request, unreported
from saccade.tasks.contract import Prepared, Recipe
from saccade.tasks.store import kept_vocabulary
from saccade.tokens.vocabulary import TokensConfig, train_vocabulary
from saccade.train.loop import TrainConfig, Work
from saccade.train.objective import SequenceObjective
from saccade.train.optim import AdamConfig
from toys.asker import MEMORIES, Asker
from toys.naming import FRONT, STACK

Row = tuple[str, str, str]
"""A picture's file, a question, a word."""


class QuestionsConfig(Record):
    rows: str
    """TSV of picture files, questions and words; every fifth row is held out."""


class AskingRecipe(Recipe):
    task: Literal["asking"] = "asking"
    data: QuestionsConfig
    model: EncoderDecoderConfig


class AskingTask:
    name: ClassVar[str] = "asking"
    recipe: ClassVar[type[Recipe]] = AskingRecipe

    def recipe_for(self, files: Sequence[Path], out: Path) -> tuple[AskingRecipe, list[str]]:
        encoders = {"picture": STACK | {"front": FRONT}, "question": STACK}
        model = EncoderDecoderConfig.read({"encoders": encoders, "decoder": STACK}, where="asking")
        train = TrainConfig(
            steps=300, warmup=10, validate_every=150, batch_tokens=256, average=1, smoothing=0.0, precision="float32",
            select_by="accuracy", adam=AdamConfig(rate=4e-3),
        )  # fmt: skip
        data = QuestionsConfig(rows=str(files[0].resolve()))
        return AskingRecipe(name=out.name, data=data, model=model, train=train), []

    def prepare(
        self, recipe: AskingRecipe, folders: Sequence[Path], out: Path, *, resume: bool, report: Report = unreported
    ) -> Prepared:
        rows = read_rows(find(recipe.data.rows, folders))
        held, trained = rows[::5], [row for place, row in enumerate(rows) if place % 5]
        if not (resume and (out / "tokenizer.json").exists()):
            texts = [text for row in rows for text in row[1:]]
            train_vocabulary(TokensConfig(kind="characters"), texts).save(out / "tokenizer.json")
        vocabulary = kept_vocabulary(out)
        torch.manual_seed(recipe.train.seed)
        model = build_encoder_decoder(recipe.model, len(vocabulary))
        source = Asker(sequence_runtime(model), vocabulary).source
        items = [source.read((file, question)) for file, question, _ in trained]
        words = Ragged.of(vocabulary.encode([word for _, _, word in trained]))

        def batch(indices: np.ndarray) -> SequenceBatch:
            batches = source.collate([items[i] for i in indices])
            sources = {name: collated_source(batch) for name, batch in zip(MEMORIES, batches, strict=True)}
            return sequence_batch(sources, None, words, indices, vocabulary.marks)

        sizes = words.lengths + 1
        work = Work(
            model=model,
            objective=SequenceObjective(),
            sampler=Sampler(sizes, sizes, budget=recipe.train.batch_tokens, seed=recipe.train.seed),
            batch=batch,
            validate=lambda trained: {"accuracy": accuracy(Asker(sequence_runtime(trained), vocabulary), held)},
            describe=lambda indices: f"of {len(indices)} questions",
        )
        return Prepared(
            work=work,
            settings={"model": recipe.model.table(), "data": recipe.data.table()},
            marks=vocabulary.marks,
            storage="float32",
            messages=[f"{len(trained)} questions"],
            files=[recipe.data.rows],
            test=lambda pipeline, _, report: [Score("accuracy", accuracy(pipeline, held), None, "held-out questions")],
        )

    def evaluate(
        self,
        pipeline: Any,
        folder: ModelFolder,
        files: Sequence[Path],
        folders: Sequence[Path],
        request: Request,
        *,
        lowercase: bool | None = None,
        report: Report = unreported,
    ) -> list[Score]:
        rows = [row for file in files for row in read_rows(file)]
        return [Score("accuracy", accuracy(pipeline, rows), None, "questions")]


def read_rows(path: Path) -> list[Row]:
    found = []
    for line in path.read_text("utf-8").splitlines():
        file, question, word = line.split("\t")
        found.append((file, question, word))
    return found


def accuracy(pipeline: Asker, rows: Sequence[Row]) -> float:
    """Share of right words, in percent."""
    answers = pipeline([(file, question) for file, question, _ in rows])
    return 100 * float(np.mean([answer.text == word for answer, (_, _, word) in zip(answers, rows, strict=True)]))
