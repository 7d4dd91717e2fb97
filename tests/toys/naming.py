"""The task of the first toy: trains a model to name what is drawn, from a table of picture files and words."""

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
from saccade.data.text import find, read_pairs
from saccade.evaluate.metrics import Score
from saccade.folder import ModelFolder
from saccade.models.answering import sequence_runtime
from saccade.models.encdec import build_encoder_decoder
from saccade.pipelines.pipeline import Report, Request, unreported
from saccade.sources.picture import PictureSource
from saccade.tasks.contract import Prepared, Recipe
from saccade.tasks.store import kept_vocabulary
from saccade.tokens.vocabulary import TokensConfig, train_vocabulary
from saccade.train.loop import TrainConfig, Work
from saccade.train.objective import SequenceObjective
from saccade.train.optim import AdamConfig
from toys.namer import Namer

STACK = {"layers": 1, "width": 32, "heads": 4, "feedforward": 64, "dropout": 0.0}
FRONT = {"kind": "patches", "height": 16, "width": 16, "channels": 1, "patch": 4}


class DrawingsConfig(Record):
    pairs: str
    """TSV of picture files and words; every fifth row is held out."""


class NamingRecipe(Recipe):
    task: Literal["naming"] = "naming"
    data: DrawingsConfig
    model: EncoderDecoderConfig


class NamingTask:
    name: ClassVar[str] = "naming"
    recipe: ClassVar[type[Recipe]] = NamingRecipe

    def recipe_for(self, files: Sequence[Path], out: Path) -> tuple[NamingRecipe, list[str]]:
        model = EncoderDecoderConfig.read({"encoder": STACK | {"front": FRONT}, "decoder": STACK}, where="naming")
        train = TrainConfig(
            steps=120, warmup=10, validate_every=60, batch_tokens=256, average=1, smoothing=0.0, precision="float32",
            select_by="accuracy", adam=AdamConfig(rate=4e-3),
        )  # fmt: skip
        data = DrawingsConfig(pairs=str(files[0].resolve()))
        return NamingRecipe(name=out.name, data=data, model=model, train=train), []

    def prepare(
        self, recipe: NamingRecipe, folders: Sequence[Path], out: Path, *, resume: bool, report: Report = unreported
    ) -> Prepared:
        pairs = read_pairs([find(recipe.data.pairs, folders)])
        if not (resume and (out / "tokenizer.json").exists()):
            train_vocabulary(TokensConfig(kind="characters"), [word for _, word in pairs]).save(out / "tokenizer.json")
        vocabulary = kept_vocabulary(out)
        torch.manual_seed(recipe.train.seed)
        model = build_encoder_decoder(recipe.model, len(vocabulary))
        held = pairs[::5]
        trained = [pair for place, pair in enumerate(pairs) if place % 5]
        front = recipe.model.readers["source"].front_end
        source = PictureSource(size_HW=(front.height, front.width), channels=1, cell=front.patch)
        items = [source.read(file) for file, _ in trained]
        words = Ragged.of(vocabulary.encode([word for _, word in trained]))

        def batch(indices: np.ndarray) -> SequenceBatch:
            pictures = collated_source(source.collate([items[i] for i in indices]))
            return sequence_batch(*pictures, words, indices, vocabulary.marks)

        sizes = words.lengths + 1
        work = Work(
            model=model,
            objective=SequenceObjective(),
            sampler=Sampler(sizes, sizes, budget=recipe.train.batch_tokens, seed=recipe.train.seed),
            batch=batch,
            validate=lambda trained: {"accuracy": accuracy(Namer(sequence_runtime(trained), vocabulary), held)},
            describe=lambda indices: f"of {len(indices)} pictures",
        )
        return Prepared(
            work=work,
            settings={"model": recipe.model.table(), "data": recipe.data.table()},
            marks=vocabulary.marks,
            storage="float32",
            messages=[f"{len(trained)} pictures"],
            files=[recipe.data.pairs],
            test=lambda pipeline, _, report: [Score("accuracy", accuracy(pipeline, held), None, "held-out drawings")],
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
        return [Score("accuracy", accuracy(pipeline, read_pairs(files)), None, "drawings")]


def accuracy(pipeline: Namer, pairs: Sequence[tuple[str, str]]) -> float:
    """Share of right words, in percent."""
    answers = pipeline([file for file, _ in pairs])
    return 100 * float(np.mean([answer.text == word for answer, (_, word) in zip(answers, pairs, strict=True)]))
