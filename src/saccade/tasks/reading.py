"""Reading words in pictures: trained on drawn ones, or on a table of pictures and texts; letters out, one by one."""

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
import torch
from pydantic import Field
from torch import nn

from saccade.arch.encoder_decoder import EncoderDecoderConfig
from saccade.data.batches import SequenceBatch, sequence_batch
from saccade.data.prepared import keep, kept
from saccade.data.ragged import Ragged
from saccade.data.sampler import Sampler
from saccade.data.text import find
from saccade.data.word_distortion import distorted
from saccade.data.word_drawing import HEIGHT, WIDTH
from saccade.data.word_sets import (
    DrawnWords,
    LabelledWords,
    WordParts,
    WordPictures,
    WordsData,
    draw_parts,
    draw_test,
    read_photographs,
    read_word_table,
)
from saccade.data.word_texts import ALPHABET
from saccade.errors import MissingData, UserError, WrongUse
from saccade.evaluate.calibration import calibration_error
from saccade.evaluate.metrics import Score
from saccade.evaluate.reading import plain, words_right
from saccade.folder import ModelFolder, Storage
from saccade.models.answering import sequence_runtime
from saccade.models.encdec import EncoderDecoder, build_encoder_decoder
from saccade.pipelines.pipeline import Report, Request, unreported
from saccade.pipelines.word_reader import WordReader
from saccade.tasks.arithmetic import Figure
from saccade.tasks.contract import Prepared, Recipe
from saccade.tasks.pointing import pointing_scores
from saccade.tasks.reading_sizes import table_recipe
from saccade.tasks.store import kept_vocabulary
from saccade.tokens.vocabulary import TokensConfig, Vocabulary, train_vocabulary
from saccade.train.loop import Work
from saccade.train.objective import SequenceObjective

TOLD_FILES = 10
"""Rows left out that are told one by one."""
PHOTOGRAPHS = {"iiit5k": "IIIT5K", "ic13": "IC13"}
Arrays = dict[str, np.ndarray]


class ReadingRecipe(Recipe):
    """From pictures of words to a reader. A batch holds `train.batch_tokens` letters, padding included."""

    task: Literal["reading"] = "reading"
    data: WordsData
    """The pictures: kind = "drawn" or "table"."""
    model: EncoderDecoderConfig
    """An encoder whose front end reads grey pictures of 32 x 128, and a decoder that writes letters."""
    ctc: float = Field(0.3, ge=0, lt=1)
    """Share of a second loss, in which the encoder tells the letters by itself (CTC)."""
    distort: bool = True
    """Training pictures are blurred, moved, lit and made noisy when they are loaded."""
    storage: Storage = "float16"
    """Number format of the stored weights."""
    layer: int = Field(1, ge=1)
    """Cross-attention layer that is drawn by default."""


class ReadingTask:
    """The task of reading, for the commands."""

    name: ClassVar[str] = "reading"
    recipe: ClassVar[type[Recipe]] = ReadingRecipe

    def recipe_for(self, files: Sequence[Path], out: Path) -> tuple[ReadingRecipe, list[str]]:
        """Sizes by the number of rows; a tenth is held out twice."""
        if len(files) != 1:
            raise WrongUse(f"one table of picture files and texts, not {len(files)} files")
        table, told = table_recipe(files[0].resolve(), out.name)
        return ReadingRecipe.read(table, where="recipe"), told

    def prepare(
        self, recipe: ReadingRecipe, folders: Sequence[Path], out: Path, *, resume: bool, report: Report = unreported
    ) -> Prepared:
        parts, told = _parts(recipe, folders, out, resume=resume, report=report)
        vocabulary = _vocabulary(recipe, parts, out, resume=resume)
        config = recipe.model.model_copy(update={"ctc": recipe.ctc > 0 or None, "tie": "decoder"})
        torch.manual_seed(recipe.train.seed)
        model = build_encoder_decoder(config, len(vocabulary))
        letters = Ragged.of(vocabulary.encode(list(parts.train.texts)))
        count, seed = len(letters), recipe.train.seed
        # Numbers count on from epoch to epoch, so that a batch is distorted in its own way in each of them.
        copies = 2 + recipe.train.steps * recipe.train.accumulate * recipe.train.batch_tokens // int(
            (letters.lengths + 1).sum()
        )
        sizes = np.tile(letters.lengths + 1, copies)
        starts = [copy * count for copy in range(copies)]

        def batch(numbers: np.ndarray) -> SequenceBatch:
            places = numbers % count
            pixels = parts.train.pixels_NHW[places]
            random = np.random.default_rng([seed, int(numbers[0]), int(numbers[-1]), len(numbers)])
            values = distorted(pixels, random) if recipe.distort else pixels[..., None].astype(np.float32) / 255
            return sequence_batch(torch.from_numpy(values.astype(np.float32)), None, letters, places, vocabulary.marks)

        sampler = Sampler(sizes, sizes, budget=recipe.train.batch_tokens, seed=seed, starts=starts)
        epochs = recipe.train.steps * recipe.train.accumulate / len(sampler.batches)
        work = Work(
            model=model,
            objective=SequenceObjective(recipe.train.smoothing, recipe.ctc, vocabulary.marks.pad),
            sampler=sampler,
            batch=batch,
            validate=lambda trained: _figures(trained, vocabulary, parts.valid),
            describe=lambda numbers: f"of {len(numbers)} words (the first: {parts.train.texts[numbers[0] % count]!r})",
        )
        parameters = sum(weight.numel() for weight in model.parameters() if weight.requires_grad)
        return Prepared(
            work=work,
            settings={"model": config.table(), "data": recipe.data.table(), "layer": recipe.layer, "seed": seed},
            marks=vocabulary.marks,
            storage=recipe.storage,
            messages=[
                *told,
                f"{count:,} training words, {len(parts.valid.texts):,} to choose by, {len(parts.test.texts):,} to test",
                f"{parameters:,} parameters, {len(vocabulary)} letters and marks, {recipe.train.steps:,} steps = "
                f"{epochs:.1f} epochs",
            ],
            files=[recipe.data.words if isinstance(recipe.data, DrawnWords) else recipe.data.file],
            test=lambda pipeline, _, report: [*_scores(pipeline, parts.test, "held out", report)],
            figure=lambda pipeline: Figure("words right", _scores(pipeline, parts.valid, "validation")[0].value),
        )

    def evaluate(
        self,
        pipeline: WordReader,
        folder: ModelFolder,
        files: Sequence[Path],
        folders: Sequence[Path],
        request: Request,
        *,
        lowercase: bool | None = None,
        report: Report = unreported,
    ) -> list[Score]:
        """Words that are right: of a table, or of the held-out families and of photographs, with calibration and
        pointing."""
        if files:
            words = [part for file in files for part in _whole_table(file)]
            return _scores(
                pipeline, WordPictures(np.stack([p for p, _ in words]), [t for _, t in words]), "table", report
            )
        table = {"name": "", "train": {"steps": 1}, "data": folder.table("data"), "model": folder.config.model}
        data = ReadingRecipe.read(table, where=folder.where).data
        seed = int(folder.config.settings.get("seed", 1))
        if isinstance(data, LabelledWords):
            return _scores(pipeline, read_word_table(data, find(data.file, folders), seed).test, "held out", report)
        found = _scores(pipeline, draw_test(data, folders, seed), "held-out families, clean", report)
        return [*found, *_photographed(pipeline, data, folders, report)]


def _photographed(pipeline: WordReader, data: DrawnWords, folders: Sequence[Path], report: Report) -> list[Score]:
    """Scores on words cut from photographs, where these are on this machine."""
    try:
        folder = find(data.photographs, folders) if data.photographs else None
    except MissingData:
        folder = None
    scores: list[Score] = []
    for name, title in PHOTOGRAPHS.items() if folder is not None else ():
        words = read_photographs(folder, name) if folder else []
        read = pipeline.read_words([word.pixels_HW for word in words])
        right = words_right([word.text for word in read], [word.text for word in words], title, exact=False)
        sure = [word.confidence for word in read]
        same = [plain(one.text) == plain(other.text) for one, other in zip(read, words, strict=True)]
        scores += [right, calibration_error(sure, same, of="words")]
        if name == "iiit5k":
            scores += pointing_scores(pipeline, words, read, report)
    return scores


def _scores(pipeline: WordReader, words: WordPictures, name: str, report: Report = unreported) -> list[Score]:
    read = pipeline.read_words(list(words.pixels_NHW))
    report(len(read), len(read))
    right = [one.text == other for one, other in zip(read, words.texts, strict=True)]
    exact = words_right([one.text for one in read], words.texts, name, exact=True)
    return [exact, calibration_error([one.confidence for one in read], right, of="words")]


def _figures(model: nn.Module, vocabulary: Vocabulary, words: WordPictures) -> dict[str, float]:
    """Words right; and the letters of the decoder's greedy reading that are, by place."""
    assert isinstance(model, EncoderDecoder)
    read = WordReader(sequence_runtime(model), vocabulary).read_words(list(words.pixels_NHW))
    right = np.mean([one.text == text for one, text in zip(read, words.texts, strict=True)])
    return {"accuracy": 100 * float(right), "confidence": 100 * float(np.mean([one.confidence for one in read]))}


def _parts(
    recipe: ReadingRecipe, folders: Sequence[Path], out: Path, *, resume: bool, report: Report
) -> tuple[WordParts, list[str]]:
    """Drawn or read once, and kept."""
    arrays = kept(out / "prepared") if resume else None
    told: list[str] = []
    if arrays is None:
        if isinstance(recipe.data, DrawnWords):
            parts = draw_parts(recipe.data, folders, recipe.train.seed, report)
        else:
            parts = read_word_table(recipe.data, find(recipe.data.file, folders), recipe.train.seed)
        told = parts.told[:TOLD_FILES]
        told += [f"… and {len(parts.told) - TOLD_FILES} others"] if len(parts.told) > TOLD_FILES else []
        arrays = keep(out / "prepared", _packed(parts))
    found = [WordPictures(arrays[name], arrays[f"{name}_texts"].tolist()) for name in ("train", "valid", "test")]
    return WordParts(found[0], found[1], found[2]), told


def _packed(parts: WordParts) -> Arrays:
    arrays: Arrays = {}
    for name, words in (("train", parts.train), ("valid", parts.valid), ("test", parts.test)):
        arrays |= {name: words.pixels_NHW, f"{name}_texts": np.array(list(words.texts))}
    return arrays


def _vocabulary(recipe: ReadingRecipe, parts: WordParts, out: Path, *, resume: bool) -> Vocabulary:
    """All visible characters of ASCII; of the user's own texts, those that occur."""
    if not (resume and (out / "tokenizer.json").exists()):
        texts = [ALPHABET] if isinstance(recipe.data, DrawnWords) else [
            text for words in (parts.train, parts.valid, parts.test) for text in words.texts
        ]  # fmt: skip
        train_vocabulary(TokensConfig(kind="characters"), texts).save(out / "tokenizer.json")
    return kept_vocabulary(out)


def _whole_table(file: Path) -> list[tuple[np.ndarray, str]]:
    parts = read_word_table(LabelledWords(file=str(file)), file, 0)
    if parts.told:
        raise UserError(parts.told[0])
    found = [parts.train, parts.valid, parts.test]
    return [pair for words in found for pair in zip(words.pixels_NHW, words.texts, strict=True)]


SIZE = (HEIGHT, WIDTH)
"""Of the pictures that are trained on: the front end of a recipe reads these."""
