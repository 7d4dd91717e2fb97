"""Spelling correction: trained on sentences with artificial misspellings."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from saccade.data.copies import Copies
from saccade.data.documents import TextFile, read_documents
from saccade.data.misspell import Misspelling, read_misspellings
from saccade.data.noise import Noise, NoiseConfig, count_words, find_names
from saccade.data.sources import Mixture
from saccade.data.text import Pair, find, read_pairs
from saccade.data.wordlist import Dictionaries, KnownWords
from saccade.errors import WrongUse
from saccade.evaluate.metrics import Score
from saccade.evaluate.spelling import Corrected, correction_rate, introduction_rate, spelling_scores, word_accuracy
from saccade.folder import ModelFolder
from saccade.pipelines.corrector import MOST_PRICE, Corrector, stretches
from saccade.pipelines.edits import apply, edits
from saccade.pipelines.pipeline import Report, Request, unreported
from saccade.tasks.arithmetic import Figure
from saccade.tasks.contract import Prepared, Recipe
from saccade.tasks.sequence import SequenceData, SequenceParts, SequenceRecipe, answered, prepare_pairs


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
    words: Dictionaries | None = None
    """Lists of words that are known to be right though training may not have them; they are never changed."""
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
    real_word_caution: float = Field(1.0, ge=0, le=1)
    """The same as `caution` for words that are in the lexicon; the smaller of both counts."""


class CorrectionTask:
    """The task of correcting, for the commands."""

    name: ClassVar[str] = "correction"
    recipe: ClassVar[type[Recipe]] = CorrectionRecipe

    def recipe_for(self, files: Sequence[Path], out: Path) -> tuple[CorrectionRecipe, list[str]]:
        raise WrongUse(
            "correcting is trained by a recipe, which names sentences and lists of misspellings: see speller"
        )

    def prepare(
        self, recipe: CorrectionRecipe, folders: Sequence[Path], out: Path, *, resume: bool, report: Report = unreported
    ) -> Prepared:
        data, read = recipe.data, _Spelling.of(recipe.data, folders)
        held, tested = _held_pairs(read, folders), _test_pairs(read, folders) if data.test else None
        written = _written_words(recipe, read)
        rare = sorted(read.known.words.difference(written)) if data.words else []
        parts = SequenceParts(
            training=lambda: Copies(Mixture.of(_training_pairs(recipe, read))),
            held={"": held},
            figures=_figures,
            figure=lambda pipeline: _figure(pipeline, held),
            files=[
                *(text.file for text in (*data.train, *data.valid, *data.test)),
                *data.misspellings,
                *(data.words.files if data.words else []),
            ],
            settings=_settings(recipe, written),
            test=(lambda pipeline, _, report: _scores(pipeline, tested, Request(), report)) if tested else None,
            words=[*written, *rare] or None,
        )
        return prepare_pairs(recipe, parts, out, resume=resume, report=report)

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
        pairs = read_pairs(files) if files else _test_pairs(_Spelling.of(data, folders), folders)
        return _scores(pipeline, pairs, request, report)


@dataclass(frozen=True)
class _Spelling:
    """The training sentences and the lists of misspellings, each read once."""

    data: SpellingData
    sentences: list[str]
    lists: list[Misspelling]
    known: KnownWords

    @classmethod
    def of(cls, data: SpellingData, folders: Sequence[Path]) -> "_Spelling":
        lists = read_misspellings([find(name, folders) for name in data.misspellings])
        wrong = {misspelling.wrong for misspelling in lists}
        known = KnownWords.read(data.words, folders, wrong) if data.words else KnownWords(set(), set())
        return cls(data, read_documents(data.train, folders), lists, known)

    @cached_property
    def counts(self) -> Counter[str]:
        """How often each word is in the training sentences."""
        return count_words(self.sentences)

    @cached_property
    def names(self) -> frozenset[str]:
        return find_names(self.sentences)

    def noise(self, *, held: bool = False) -> Noise:
        """What misspells; `held`: by what training never saw."""
        words = self.counts if self.data.noise.real_word_errors else None
        return Noise.of(self.data.noise, self.lists, held=held, names=self.names, words=words)


def _training_pairs(recipe: CorrectionRecipe, read: _Spelling) -> list[Pair]:
    noise, seed = read.noise(), recipe.train.seed
    # Long sentences are cut as the corrector cuts them, which is how it will meet them.
    cut = [text[start:stop] for text in read.sentences for start, stop in stretches(text)]
    texts = cut + (sorted(noise.known) if recipe.data.single_words else [])
    return [
        (noise(text, np.random.default_rng([seed, copy, place])), text)
        for copy in range(recipe.data.copies)
        for place, text in enumerate(texts)
    ]


def _held_pairs(read: _Spelling, folders: Sequence[Path]) -> list[Pair]:
    """With misspellings as in the training part: held-out misspellings are for the test only."""
    data, noise = read.data, read.noise()
    sentences = [text for text in read_documents(data.valid, folders) if len(text.encode()) <= data.longest_pair]
    chosen = np.random.default_rng(0).permutation(len(sentences))[: data.valid_limit]
    random = [np.random.default_rng([0, int(place)]) for place in chosen]
    return [(noise(sentences[i], one), sentences[i]) for i, one in zip(chosen, random, strict=True)]


def _test_pairs(read: _Spelling, folders: Sequence[Path]) -> list[Pair]:
    noise, seen = read.noise(held=True), set(read.sentences)
    sentences = [sentence for sentence in read_documents(read.data.test, folders) if sentence not in seen]
    return [(noise(sentence, np.random.default_rng([0, place])), sentence) for place, sentence in enumerate(sentences)]


def _settings(recipe: CorrectionRecipe, written: Sequence[str]) -> dict[str, float]:
    if not recipe.lexicon_min_count:
        return {"caution": recipe.caution}
    return {
        "caution": recipe.caution,
        "real_word_caution": recipe.real_word_caution,
        "unknown_word_cost": recipe.unknown_word_cost,
        "written_words": len(written),
    }


def _written_words(recipe: CorrectionRecipe, read: _Spelling) -> list[str]:
    """The words that others may be changed into: those the model has met often enough."""
    if not recipe.lexicon_min_count:
        return []
    single = {right for _, right, _ in read.lists} if recipe.data.single_words else set()
    often = {word for word, count in read.counts.items() if count >= recipe.lexicon_min_count}
    return sorted(single | (often - read.known.wrong))


def _figures(sources: list[str], outputs: list[str], accepted: list[list[str]]) -> dict[str, float]:
    mended = [apply(source, edits(source, output)) for source, output in zip(sources, outputs, strict=True)]
    found = Corrected.of(sources, mended, [truths[0] for truths in accepted])
    rates = (word_accuracy, correction_rate, introduction_rate)
    names = ("accuracy", "corrected", "introduced")
    return {name: rate(found, bootstrap=0).value for name, rate in zip(names, rates, strict=True)}


def _figure(pipeline: Corrector, pairs: Sequence[Pair]) -> Figure:
    accuracy, *_ = _scores(pipeline, pairs, Request(), unreported)
    return Figure(accuracy.name, accuracy.value, 0.01)


def _scores(pipeline: Corrector, pairs: Sequence[Pair], request: Request, report: Report) -> list[Score]:
    sources, truths = [source for source, _ in pairs], [truth for _, truth in pairs]
    outputs = [one.text for one in answered(pipeline, sources, request, report)]
    return spelling_scores(sources, outputs, truths)
