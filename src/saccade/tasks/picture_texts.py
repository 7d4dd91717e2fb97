"""The shared part of captioning and of answering questions: from pictures and texts to an encoder, or two, and a
decoder that looks."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from pydantic import Field
from torch import nn

from saccade.arch.encoder_decoder import EncoderDecoderConfig
from saccade.arch.front_end import PictureFrontEnd
from saccade.config import Table
from saccade.data.batches import NamedSources, SequenceBatch, sequence_batch
from saccade.data.picture_augment import PictureAugmentConfig, PictureAugmenter
from saccade.data.picture_text_sets import data_files, read_parts, whole_table
from saccade.data.picture_texts import AnyTexts, HeldOut, PictureExamples, Taken
from saccade.data.ragged import Ragged
from saccade.data.sampler import Sampler
from saccade.decode.search import SearchConfig
from saccade.errors import WrongUse
from saccade.evaluate.metrics import Score
from saccade.evaluate.picture_texts import bleu_scores, right_answers, sure_from, sure_scores
from saccade.folder import ModelFolder, Storage
from saccade.models.answering import sequence_runtime
from saccade.models.encdec import EncoderDecoder, build_encoder_decoder
from saccade.pipelines.picture_input import PictureInput
from saccade.pipelines.picture_writer import PictureWriter, PictureWriterSettings
from saccade.pipelines.pipeline import Report, unreported
from saccade.tasks.arithmetic import Figure
from saccade.tasks.contract import Finish, Prepared, Recipe
from saccade.tasks.store import kept_vocabulary
from saccade.tokens.vocabulary import TokensConfig, Vocabulary, train_vocabulary
from saccade.train.loop import Work
from saccade.train.objective import SequenceObjective

TOLD_FILES = 10
"""Rows left out that are told one by one."""
Writer = PictureWriter[Any, Any]
MakeWriter = Callable[[Any, Vocabulary, PictureWriterSettings], Writer]
ScoreTexts = Callable[[HeldOut, Sequence[str], Sequence[float]], list[Score]]
"""Held-out examples, what was written, and its confidence -> scores."""


class PictureTextRecipe(Recipe):
    """What recipes of both tasks have. A batch is of `train.batch_tokens` examples."""

    data: Any
    model: EncoderDecoderConfig
    augment: PictureAugmentConfig = PictureAugmentConfig()
    """How training pictures are changed. Mirrors would make "left" wrong."""
    tokens: TokensConfig = TokensConfig(vocabulary=2000)
    search: SearchConfig = SearchConfig(beam=3, alpha=0.0, extra=40)
    blind: bool = False
    """Pictures are not shown, in training and later: what is right then was guessed from texts alone."""
    coverage: float = Field(0.0, ge=0, le=100)
    """Weight of the doubly stochastic term: every part of the picture is to be looked at about once (Xu et al. 2015,
    4.2.1)."""
    storage: Storage = "float16"
    """Number format of the stored weights."""
    layer: int = Field(1, ge=1)
    """Cross-attention layer that is drawn by default."""

    def picture_input(self, memory: str) -> PictureInput:
        """How the pictures of this memory enter the model."""
        front = self.model.readers[memory].front_end
        if not isinstance(front, PictureFrontEnd):
            raise WrongUse(f"model: the encoder of {memory!r} has no front end for pictures; set its front")
        return PictureInput(front, self.blind)


def prepare_texts(
    recipe: PictureTextRecipe,
    make: MakeWriter,
    memory: str,
    score: ScoreTexts,
    folders: Sequence[Path],
    out: Path,
    *,
    asks: bool,
    resume: bool,
    report: Report,
) -> Prepared:
    """Everything that training needs; `make` makes a pipeline, and `memory` is the name of the picture's."""
    given, seed = recipe.picture_input(memory), recipe.train.seed
    parts = read_parts(recipe.data, folders, given.source, seed, asks=asks, report=report)
    train, valid = parts.train(), parts.valid()
    vocabulary = _vocabulary(recipe.tokens, train, out, resume=resume)
    torch.manual_seed(seed)
    model = build_encoder_decoder(recipe.model, len(vocabulary))
    settings = PictureWriterSettings(search=recipe.search, layer=recipe.layer, blind=recipe.blind)

    def writer(trained: nn.Module) -> Writer:
        assert isinstance(trained, EncoderDecoder)
        return make(sequence_runtime(trained), vocabulary, settings)

    batch = _Batches(train, vocabulary, writer(model), PictureAugmenter(recipe.augment, seed, len(train)))
    count, examples = len(train), recipe.train.steps * recipe.train.accumulate * recipe.train.batch_tokens
    # Numbers count on from epoch to epoch: scenes are drawn by number, and pictures are changed by it.
    copies = examples // count + 2
    ones, starts = np.ones(copies * count, dtype=np.int64), [copy * count for copy in range(copies)]
    parameters = sum(weight.numel() for weight in model.parameters() if weight.requires_grad)
    told = [*parts.told[:TOLD_FILES]]
    told += [f"… and {len(parts.told) - TOLD_FILES} others"] if len(parts.told) > TOLD_FILES else []
    held = sum(map(len, valid))
    return Prepared(
        work=Work(
            model=model,
            objective=SequenceObjective(recipe.train.smoothing, coverage=recipe.coverage, covered=memory),
            sampler=Sampler(ones, ones, budget=recipe.train.batch_tokens, seed=seed, starts=starts),
            batch=batch,
            validate=lambda trained: figures(writer(trained), valid),
            describe=lambda numbers: f"of {len(numbers)} pictures (numbers {(numbers % count)[:5].tolist()}, …)",
        ),
        settings=_settings(recipe, seed),
        marks=vocabulary.marks,
        storage=recipe.storage,
        messages=[
            *told,
            f"{count:,} training examples an epoch, {held:,} to choose by",
            f"{parameters:,} parameters, {len(vocabulary):,} pieces of text, {recipe.train.steps:,} steps of "
            f"{recipe.train.batch_tokens} = {examples / count:.1f} epochs",
        ],
        files=data_files(recipe.data),
        test=lambda pipeline, _, told_to: all_scores(pipeline, parts.test(), score, told_to),
        figure=lambda pipeline: Figure(*next(iter(figures(pipeline, valid).items()))),
        finish=lambda _: _finish(writer(model), valid),
    )


def _settings(recipe: PictureTextRecipe, seed: int) -> Table:
    return {
        "model": recipe.model.table(), "data": recipe.data.table(), "search": recipe.search.table(),
        "layer": recipe.layer, "blind": recipe.blind, "seed": seed,
    }  # fmt: skip


class _Batches:
    """Numbers of examples -> a batch."""

    def __init__(
        self, examples: PictureExamples, vocabulary: Vocabulary, writer: Writer, augmenter: PictureAugmenter
    ) -> None:
        self.examples, self.vocabulary, self.writer, self.augmenter = examples, vocabulary, writer, augmenter

    def __call__(self, numbers: np.ndarray) -> SequenceBatch:
        taken = self.examples.take(numbers)
        source, mask = self._source(taken, numbers)
        texts = Ragged.of(self.vocabulary.encode(taken.texts))
        batch = sequence_batch(source, mask, texts, np.arange(len(numbers)), self.vocabulary.marks)
        return replace(batch, indices=numbers)

    def _source(self, taken: Taken, numbers: np.ndarray) -> tuple[torch.Tensor | NamedSources, torch.Tensor | None]:
        given, mask = self.writer.sources(taken.pictures_BHWC, taken.questions)
        changed = self.augmenter.config != PictureAugmentConfig() and not self.writer.settings.blind
        pixels = self.augmenter(taken.pictures_BHWC, numbers) if changed else None
        if isinstance(given, np.ndarray):
            return _tensor(given if pixels is None else pixels), None if mask is None else _tensor(mask)
        sources: NamedSources = {}
        for name, (values, real) in given.items():
            shown = pixels if pixels is not None and name == self.writer.memory else values
            sources[name] = (_tensor(shown), None if real is None else _tensor(real))
        return sources, None


def _tensor(array: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(np.ascontiguousarray(array))


def _vocabulary(tokens: TokensConfig, train: PictureExamples, out: Path, *, resume: bool) -> Vocabulary:
    """That of a resumed run, else one learnt from the training texts."""
    if not (resume and (out / "tokenizer.json").exists()):
        train_vocabulary(tokens, train.sentences()).save(out / "tokenizer.json")
    return kept_vocabulary(out)


def write_held(pipeline: Writer, held: HeldOut, report: Report = unreported) -> tuple[list[str], list[float]]:
    """What is written about held-out examples, and how sure it is."""
    best = [one[0] for one in pipeline.write(held.pictures_NHWC, held.questions, report=report)]
    return [one.text for one in best], [one.confidence for one in best]


def figures(pipeline: Writer, valid: Sequence[HeldOut]) -> dict[str, float]:
    """In percent: right captions of scenes, or right answers; where captions are many people's, BLEU-4. The first is
    what int8 is judged by."""
    found: dict[str, list[float]] = {}
    for held in valid:
        texts, sure = write_held(pipeline, held)
        if held.scenes or held.questions:
            found.setdefault("accuracy", []).append(100 * float(np.mean(right_answers(held, texts))))
        else:
            found.setdefault("bleu", []).append(bleu_scores(held, texts)[1].value)
        found.setdefault("confidence", []).append(100 * float(np.mean(sure)))
    return {name: float(np.mean(values)) for name, values in found.items()}


def _finish(pipeline: Writer, valid: Sequence[HeldOut]) -> Finish:
    """From which confidence on the model is sure, where what is right can be told."""
    sure: list[float] = []
    right: list[bool] = []
    for held in valid:
        if held.scenes or held.questions:
            texts, some = write_held(pipeline, held)
            sure, right = [*sure, *some], [*right, *right_answers(held, texts)]
    threshold = sure_from(sure, right) if sure else 0.0
    told = [f"sure from a confidence of {threshold:.3f} on"] if sure else []
    return Finish({"sure": threshold}, {}, told, lambda _: [])


def all_scores(
    pipeline: Writer, test: Sequence[HeldOut], score: ScoreTexts, report: Report = unreported
) -> list[Score]:
    """Of every test part; and how often the model is right where it is sure."""
    scores: list[Score] = []
    total, done = sum(map(len, test)), 0
    for held in test:
        before = done
        texts, sure = write_held(pipeline, held, lambda some, _, before=before: report(before + some, total))  # type: ignore[misc]
        done += len(held)
        scores += score(held, texts, sure)
        if pipeline.settings.sure and (held.scenes or held.questions):
            scores += sure_scores(sure, right_answers(held, texts), pipeline.settings.sure)
    return scores


def stored_recipe(folder: ModelFolder) -> Table:
    """As much of a recipe as its model folder says."""
    return {"name": "", "train": {"steps": 1}, "data": folder.table("data"), "model": folder.config.model}


def test_parts(
    data: AnyTexts,
    folder: ModelFolder,
    pipeline: Writer,
    files: Sequence[Path],
    folders: Sequence[Path],
    *,
    asks: bool,
) -> list[HeldOut]:
    """The given tables, or the test parts of the recipe."""
    source = pipeline.input.source
    if files:
        return [whole_table(file, source, unreported, asks=asks).held_out(file.name) for file in files]
    seed = int(folder.config.settings.get("seed", 1))
    return read_parts(data, folders, source, seed, asks=asks, report=unreported).test()
