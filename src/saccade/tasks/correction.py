"""Spelling correction: sentences, misspelt by a program as people misspell, in; a model that mends them out."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from saccade.data.documents import TextFile, read_documents
from saccade.data.misspell import read_misspellings
from saccade.data.noise import Noise, NoiseConfig, count_words, find_names
from saccade.data.text import Pair, find, read_pairs
from saccade.errors import WrongUse
from saccade.evaluate.metrics import Score
from saccade.evaluate.spelling import Corrected, correction_rate, introduction_rate, spelling_scores, word_accuracy
from saccade.folder import ModelFolder
from saccade.tasks.asked import Report, Request, unreported
from saccade.tasks.contract import Recipe
from saccade.tasks.corrector import MOST_PRICE, Corrector
from saccade.tasks.edits import apply, edits
from saccade.tasks.sequence import SequenceData, SequenceRecipe, SequenceTask, answered


class SpellingData(SequenceData):
    """Where sentences and misspellings are."""

    train: list[TextFile] = Field(min_length=1)
    """Sentences, spelt right, to be misspelt and mended."""
    valid: list[TextFile] = Field(min_length=1)
    """Likewise; they decide what is kept, and are never trained on."""
    test: list[TextFile] = Field([])
    """Likewise, misspelt by what is held out only; those that are trained on are left out."""
    misspellings: list[str] = Field(["spelling/codespell.tsv.gz"])
    """Lists of misspellings; a fifth of each, by hash, is never trained on."""
    noise: NoiseConfig = NoiseConfig()
    """How much is misspelt, and how."""
    copies: int = Field(1, ge=1, le=100)
    """How often each sentence is met, misspelt otherwise each time."""
    alone: bool = False
    """Each word of the lists is met by itself, too, as often as a sentence."""
    most_valid: int = Field(500, ge=1)
    """So many of the sentences to choose by are taken."""
    longest: int = Field(160, ge=1)
    """Training pairs with more tokens on a side are left out, and counted."""


class CorrectionRecipe(SequenceRecipe):
    task: Literal["correction"] = "correction"
    data: SpellingData
    caution: float = Field(1.0, gt=0, le=1)
    """A word is changed only if the model gives less than this probability to leaving it as it is."""
    known: int = Field(0, ge=0)
    """A word is changed only into one that the training sentences have at least so often, or that was met `alone`; 0:
    into any."""
    price: float = Field(0.0, ge=0, le=MOST_PRICE)
    """With `known`: what it costs, in natural logarithms, to leave a word that they do not have and that is no name."""


class CorrectionTask(SequenceTask):
    """What the commands know of correcting."""

    name: ClassVar[str] = "correction"
    recipe: ClassVar[type[Recipe]] = CorrectionRecipe
    pipeline: ClassVar[type[Corrector]] = Corrector

    def recipe_for(self, files: Sequence[Path], out: Path) -> tuple[CorrectionRecipe, list[str]]:
        raise WrongUse(
            "correcting is trained by a recipe, which names sentences and lists of misspellings: see speller"
        )

    def training_pairs(self, recipe: CorrectionRecipe, folders: Sequence[Path]) -> list[Pair]:
        sentences = read_documents(recipe.data.train, folders)
        noise = _noise(recipe.data, folders, sentences)
        seed, texts = recipe.train.seed, sentences + (sorted(noise.known) if recipe.data.alone else [])
        return [
            (noise(text, np.random.default_rng([seed, copy, place])), text)
            for copy in range(recipe.data.copies)
            for place, text in enumerate(texts)
        ]

    def held_pairs(self, recipe: CorrectionRecipe, folders: Sequence[Path]) -> list[Pair]:
        """Misspelt as the training part is: the held-out misspellings are for the test alone."""
        sentences = [
            sentence
            for sentence in read_documents(recipe.data.valid, folders)
            if len(sentence.encode()) <= recipe.data.longest
        ]
        noise = _noise(recipe.data, folders, read_documents(recipe.data.train, folders))
        chosen = np.random.default_rng(0).permutation(len(sentences))[: recipe.data.most_valid]
        return [(noise(sentences[place], np.random.default_rng([0, int(place)])), sentences[place]) for place in chosen]

    def words(self, recipe: CorrectionRecipe, folders: Sequence[Path]) -> list[str] | None:
        if not recipe.known:
            return None
        met = count_words(read_documents(recipe.data.train, folders))
        lists = read_misspellings([find(name, folders) for name in recipe.data.misspellings])
        alone = {right for _, right, _ in lists} if recipe.data.alone else set()
        return sorted(alone.union(word for word, count in met.items() if count >= recipe.known))

    def settings(self, recipe: CorrectionRecipe) -> dict[str, Any]:
        return {"caution": recipe.caution} | ({"price": recipe.price} if recipe.known else {})

    def figures(
        self, recipe: CorrectionRecipe, sources: list[str], outputs: list[str], accepted: list[list[str]]
    ) -> dict[str, float]:
        mended = [apply(source, edits(source, output)) for source, output in zip(sources, outputs, strict=True)]
        found = Corrected.of(sources, mended, [truths[0] for truths in accepted])
        rates = (word_accuracy, correction_rate, introduction_rate)
        names = ("accuracy", "corrected", "introduced")
        return {name: rate(found, bootstrap=0).value for name, rate in zip(names, rates, strict=True)}

    def has_test(self, recipe: CorrectionRecipe) -> bool:
        return bool(recipe.data.test)

    def evaluate(
        self,
        pipeline: Corrector,
        folder: ModelFolder,
        files: Sequence[Path],
        folders: Sequence[Path],
        request: Request,
        *,
        lowercase: bool | None = None,
        report: Report = unreported,
    ) -> list[Score]:
        """Word accuracy, and the share of words made right and made wrong, on a TSV of misspelt and right sentences, or
        on the recipe's own, misspelt by what is held out."""
        data = SpellingData.read(folder.config.get("data", {}), where=str(folder.path / "config.json"))
        if not files and not data.test:
            raise WrongUse(
                f"{folder.path}: names no test part; give a TSV of misspelt and right sentences: "
                "saccade evaluate MODEL FILE.tsv"
            )
        pairs = read_pairs(files) if files else _test_pairs(data, folders)
        sources, truths = [source for source, _ in pairs], [truth for _, truth in pairs]
        return spelling_scores(sources, answered(pipeline, sources, request, report), truths)


def _noise(data: SpellingData, folders: Sequence[Path], training: Sequence[str], *, held: bool = False) -> Noise:
    lists = read_misspellings([find(name, folders) for name in data.misspellings])
    words = count_words(training) if data.noise.confused else None
    return Noise.of(data.noise, lists, held=held, names=find_names(training), words=words)


def _test_pairs(data: SpellingData, folders: Sequence[Path]) -> list[Pair]:
    training = read_documents(data.train, folders)
    noise, seen = _noise(data, folders, training, held=True), set(training)
    sentences = [sentence for sentence in read_documents(data.test, folders) if sentence not in seen]
    return [(noise(sentence, np.random.default_rng([0, place])), sentence) for place, sentence in enumerate(sentences)]
