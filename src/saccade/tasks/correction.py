"""Spelling correction: trained on sentences with artificial misspellings."""

from collections.abc import Mapping, Sequence
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
from saccade.pipelines.corrector import MOST_PRICE, Corrector
from saccade.pipelines.edits import apply, edits
from saccade.pipelines.pipeline import Report, Request, unreported
from saccade.tasks.contract import Recipe
from saccade.tasks.sequence import SequenceData, SequenceRecipe, SequenceTask, answered


class SpellingData(SequenceData):
    """Files of sentences and misspellings."""

    renamed: ClassVar[Mapping[str, str]] = {
        **SequenceData.renamed,
        "alone": "single_words",
        "most_valid": "valid_limit",
    }

    train: list[TextFile] = Field(min_length=1)
    """Correct sentences; training adds misspellings to them."""
    valid: list[TextFile] = Field(min_length=1)
    """Correct sentences for validation: they select the best checkpoint."""
    test: list[TextFile] = Field([])
    """Correct sentences for the test, with held-out misspellings only. Training sentences are left out."""
    misspellings: list[str] = Field(["spelling/codespell.tsv.gz"])
    """Lists of misspellings. A fifth of each, chosen by hash, is never trained on."""
    noise: NoiseConfig = NoiseConfig()
    """How many words are misspelt, and how."""
    copies: int = Field(1, ge=1, le=100)
    """Copies of each sentence, with different misspellings."""
    single_words: bool = False
    """Also train on each word of the lists by itself, as often as on a sentence."""
    valid_limit: int = Field(500, ge=1)
    """Number of validation sentences to use."""
    longest_pair: int = Field(160, ge=1)
    """Longest training pair, in tokens of its longer side; longer pairs are left out and counted."""


class CorrectionRecipe(SequenceRecipe):
    renamed: ClassVar[Mapping[str, str]] = {
        **SequenceRecipe.renamed,
        "known": "lexicon_min_count",
        "price": "unknown_word_cost",
    }

    task: Literal["correction"] = "correction"
    data: SpellingData
    caution: float = Field(1.0, gt=0, le=1)
    """Change a word only if the model's probability of keeping it is below this."""
    lexicon_min_count: int = Field(0, ge=0)
    """Change words only into words that occur at least this often in the training sentences, or that are among the
    `single_words`. 0: no such limit."""
    unknown_word_cost: float = Field(0.0, ge=0, le=MOST_PRICE)
    """With `lexicon_min_count`: cost, in nats, of keeping a word that is neither in the lexicon nor a name."""


class CorrectionTask(SequenceTask):
    """The task of correcting, for the commands."""

    name: ClassVar[str] = "correction"
    recipe: ClassVar[type[Recipe]] = CorrectionRecipe

    def recipe_for(self, files: Sequence[Path], out: Path) -> tuple[CorrectionRecipe, list[str]]:
        raise WrongUse(
            "correcting is trained by a recipe, which names sentences and lists of misspellings: see speller"
        )

    def training_pairs(self, recipe: CorrectionRecipe, folders: Sequence[Path]) -> list[Pair]:
        sentences = read_documents(recipe.data.train, folders)
        noise = _noise(recipe.data, folders, sentences)
        seed, texts = recipe.train.seed, sentences + (sorted(noise.known) if recipe.data.single_words else [])
        return [
            (noise(text, np.random.default_rng([seed, copy, place])), text)
            for copy in range(recipe.data.copies)
            for place, text in enumerate(texts)
        ]

    def held_pairs(self, recipe: CorrectionRecipe, folders: Sequence[Path]) -> dict[str, list[Pair]]:
        """With misspellings as in the training part: held-out misspellings are for the test only."""
        sentences = [
            sentence
            for sentence in read_documents(recipe.data.valid, folders)
            if len(sentence.encode()) <= recipe.data.longest_pair
        ]
        noise = _noise(recipe.data, folders, read_documents(recipe.data.train, folders))
        chosen = np.random.default_rng(0).permutation(len(sentences))[: recipe.data.valid_limit]
        random = [np.random.default_rng([0, int(place)]) for place in chosen]
        return {"": [(noise(sentences[i], one), sentences[i]) for i, one in zip(chosen, random, strict=True)]}

    def words(self, recipe: CorrectionRecipe, folders: Sequence[Path]) -> list[str] | None:
        if not recipe.lexicon_min_count:
            return None
        met = count_words(read_documents(recipe.data.train, folders))
        lists = read_misspellings([find(name, folders) for name in recipe.data.misspellings])
        single = {right for _, right, _ in lists} if recipe.data.single_words else set()
        return sorted(single.union(word for word, count in met.items() if count >= recipe.lexicon_min_count))

    def settings(self, recipe: CorrectionRecipe) -> dict[str, Any]:
        return {"caution": recipe.caution} | (
            {"unknown_word_cost": recipe.unknown_word_cost} if recipe.lexicon_min_count else {}
        )

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
        data = SpellingData.read(folder.table("data"), where=str(folder.path / "config.json"))
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
    words = count_words(training) if data.noise.real_word_errors else None
    return Noise.of(data.noise, lists, held=held, names=find_names(training), words=words)


def _test_pairs(data: SpellingData, folders: Sequence[Path]) -> list[Pair]:
    training = read_documents(data.train, folders)
    noise, seen = _noise(data, folders, training, held=True), set(training)
    sentences = [sentence for sentence in read_documents(data.test, folders) if sentence not in seen]
    return [(noise(sentence, np.random.default_rng([0, place])), sentence) for place, sentence in enumerate(sentences)]
