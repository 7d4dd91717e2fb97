"""Tagging: a sentence in, a tag for each of its words out; trained from CoNLL-U."""

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
import torch
from pydantic import Field
from torch import nn

from saccade.arch.heads import EncoderModel, TagsHead
from saccade.carried import CarriedTest
from saccade.config import Record
from saccade.data.conllu import Sentence, TagColumn, only_column, read_conllu
from saccade.data.encoded import Words
from saccade.data.labelled import tagged_batch
from saccade.data.ragged import Ragged
from saccade.data.sampler import Sampler
from saccade.data.text import find
from saccade.errors import WrongUse
from saccade.evaluate.classes import Classified, accuracy, macro_f1
from saccade.evaluate.metrics import Score
from saccade.folder import ModelFolder, Storage
from saccade.models.answering import encoder_runtime
from saccade.models.encoders import build_encoder_model
from saccade.pipelines.pipeline import Report, Request, unreported
from saccade.pipelines.tagger import Tagger
from saccade.tasks.arithmetic import Figure
from saccade.tasks.contract import Prepared, Recipe
from saccade.tasks.encoder import EncoderRecipe, begin, hiding
from saccade.train.loop import TrainConfig, Work
from saccade.train.objective import TagObjective
from saccade.train.optim import AdamConfig


class TreebankConfig(Record):
    """Files of tagged sentences (CoNLL-U)."""

    train: list[str] = Field(min_length=1)
    """Training files."""
    valid: list[str] = Field(min_length=1)
    """Validation files: they select the best checkpoint."""
    test: list[str] = Field(default_factory=list)
    """Test files, used for the final score and by `saccade evaluate`."""
    column: TagColumn = "upos"
    """Column of the tags."""


class TaggingRecipe(EncoderRecipe):
    task: Literal["tagging"] = "tagging"
    data: TreebankConfig
    storage: Storage = "float16"
    """Number format of the stored weights."""


class TaggingTask:
    """The task of tagging, for the commands."""

    name: ClassVar[str] = "tagging"
    recipe: ClassVar[type[Recipe]] = TaggingRecipe

    def recipe_for(self, files: Sequence[Path], out: Path) -> tuple[TaggingRecipe, list[str]]:
        """From scratch."""
        return self.recipe_from(files, out, "")

    def texts_of(self, files: Sequence[Path]) -> list[str]:
        return [sentence.text for sentence in read_conllu(files[0])]

    def recipe_from(self, files: Sequence[Path], out: Path, start: str) -> tuple[TaggingRecipe, list[str]]:
        """The files are training, validation and, if there is a third, test."""
        if not 2 <= len(files) <= 3:
            raise WrongUse(
                "saccade train tagging needs a CoNLL-U file to train on, one to choose by, and may have a test"
            )
        train, valid, *test = (str(file.resolve()) for file in files)
        words = sum(len(sentence.words) for sentence in read_conllu(files[0]))
        steps = min(5_000, max(200, words * 15 // 1500))
        recipe = TaggingRecipe(
            name=out.name,
            data=TreebankConfig(train=[train], valid=[valid], test=test),
            init=start,
            train=TrainConfig(
                steps=steps,
                batch_tokens=2048,
                warmup=max(1, steps // 10),
                validate_every=max(1, steps // 10),
                patience=5,
                smoothing=0.0,
                select_by="accuracy",
                adam=AdamConfig(rate=1e-3 if start else 2e-3, decay=0.1),
                layer_decay=0.9 if start else 1.0,
            ),
        )
        return recipe, [f"{words:,} words; at most {steps:,} steps"]

    def prepare(
        self, recipe: TaggingRecipe, folders: Sequence[Path], out: Path, *, resume: bool, report: Report = unreported
    ) -> Prepared:
        data = recipe.data
        training, tags = _training(recipe, folders)
        valid, tested = (_read(files, data.column, folders) for files in (data.valid, data.test))
        beginning = begin(recipe, [sentence.text for sentence in training], out, resume=resume)
        vocabulary, context = beginning.vocabulary, beginning.config.context
        torch.manual_seed(recipe.train.seed)
        described = EncoderModel(encoder=beginning.config, head=TagsHead(outputs=len(tags)))
        model = build_encoder_model(described, len(vocabulary) + 1, hiding(recipe, vocabulary))
        beginning.fill(model)
        words = Words.of(vocabulary, [one.words for one in training], [one.spaces for one in training], context)
        number = {tag: place for place, tag in enumerate(tags)}
        labels = _per_row(words, [[number[tag] for tag in sentence.tags] for sentence in training])
        lengths = words.rows.lengths
        sampler = Sampler(lengths, lengths, budget=recipe.train.batch_tokens, seed=recipe.train.seed)

        def pipeline(trained: nn.Module) -> Tagger:
            return Tagger(encoder_runtime(trained, described, "exact"), vocabulary, tags, recipe.data.column)

        work = Work(
            model=model,
            objective=TagObjective(recipe.train.smoothing),
            sampler=sampler,
            batch=lambda rows: tagged_batch(words, rows, labels),
            validate=lambda trained: {"accuracy": accuracy(answers(pipeline(trained), valid), bootstrap=0).value},
            describe=lambda rows: (
                f"of {len(rows)} sentences (the first is {vocabulary.decode(words.rows[rows[0]])[:80]!r})"
            ),
        )
        epochs = recipe.train.steps * recipe.train.accumulate / len(sampler.batches)
        told = [
            f"{len(training):,} sentences of {len(labels.flat):,} words with {len(tags)} tags; {len(valid):,} held out",
            f"{recipe.began}: {sum(w.numel() for w in model.parameters()):,} parameters, {recipe.train.steps:,} steps "
            f"= {epochs:.1f} epochs",
        ]
        return Prepared(
            work=work,
            settings={"model": beginning.config.table(), "data": data.table(), "tags": tags},
            marks=vocabulary.marks,
            storage=recipe.storage,
            messages=told,
            files=[*data.train, *data.valid, *data.test],
            test=(lambda pipeline, _, report: scores(pipeline, tested, report)) if tested else None,
            carried=(lambda: CarriedTest("test.conllu.xz", only_column(tested, data.column))) if tested else None,
            figure=lambda pipeline: Figure("accuracy", accuracy(answers(pipeline, valid), bootstrap=0).value),
        )

    def evaluate(
        self,
        pipeline: Tagger,
        folder: ModelFolder,
        files: Sequence[Path],
        folders: Sequence[Path],
        request: Request,
        *,
        lowercase: bool | None = None,
        report: Report = unreported,
    ) -> list[Score]:
        """The share of words with the right tag, and the mean F1 of the tags."""
        if files:
            sentences = [sentence for file in files for sentence in read_conllu(file, pipeline.column)]
        else:
            data = TreebankConfig.read(folder.table("data"), where=str(folder.path / "config.json"))
            if not data.test:
                raise WrongUse(f"{folder.path}: names no test part; give files: saccade evaluate MODEL FILES")
            sentences = _read(data.test, data.column, folders)
        return scores(pipeline, sentences, report)


def scores(pipeline: Tagger, sentences: Sequence[Sentence], report: Report = unreported) -> list[Score]:
    """The figures of a model on tagged sentences."""
    found = answers(pipeline, sentences, report)
    return [accuracy(found), macro_f1(found)]


def answers(pipeline: Tagger, sentences: Sequence[Sentence], report: Report = unreported) -> Classified:
    """Every word's true tag and the model's; a tag that training never saw is one more class, and never right."""
    predicted = pipeline.tag([one.words for one in sentences], [one.spaces for one in sentences], report)
    unseen = {tag for sentence in sentences for tag in sentence.tags} - set(pipeline.tags)
    classes = [*pipeline.tags, *sorted(unseen)]
    number = {tag: place for place, tag in enumerate(classes)}
    return Classified(
        gold=[number[tag] for sentence in sentences for tag in sentence.tags],
        predicted=[number[tag] for tags in predicted for tag in tags],
        classes=classes,
        groups=[place for place, sentence in enumerate(sentences) for _ in sentence.tags],
    )


def _training(recipe: TaggingRecipe, folders: Sequence[Path]) -> tuple[list[Sentence], list[str]]:
    """The sentences that are trained on, and their tags."""
    sentences = _read(recipe.data.train, recipe.data.column, folders)
    sentences = [sentences[place] for place in recipe.chosen(len(sentences))]
    return sentences, sorted({tag for sentence in sentences for tag in sentence.tags})


def _read(files: Sequence[str], column: TagColumn, folders: Sequence[Path]) -> list[Sentence]:
    return [sentence for file in files for sentence in read_conllu(find(file, folders), column)]


def _per_row(words: Words, tags: Sequence[Sequence[int]]) -> Ragged:
    """The sentences' tags, cut as their rows are."""
    return Ragged(np.array([tag for sentence in tags for tag in sentence], dtype=np.int32), words.begins.lengths)
