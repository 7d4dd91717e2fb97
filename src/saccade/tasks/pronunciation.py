"""Pronunciation: trained on a dictionary; words in, phonemes out."""

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Literal

from pydantic import Field

from saccade.carried import CarriedTest
from saccade.data.copies import Copies
from saccade.data.phonemes import as_phonemes, as_signs, read_dictionary
from saccade.data.sources import Mixture
from saccade.data.text import Pair, find
from saccade.errors import UserError, WrongUse
from saccade.evaluate.metrics import Score
from saccade.evaluate.pronunciation import phoneme_error_rate, pronunciation_scores, word_error_rate
from saccade.folder import ModelFolder
from saccade.pipelines.pipeline import Report, Request, unreported
from saccade.pipelines.pronouncer import Pronouncer
from saccade.tasks.arithmetic import Figure
from saccade.tasks.contract import Prepared, Recipe
from saccade.tasks.sequence import SequenceData, SequenceParts, SequenceRecipe, answered, by_source, prepare_pairs
from saccade.tokens.vocabulary import TokensConfig


class DictionaryData(SequenceData):
    """TSV files of words and their phonemes (ARPAbet). A word may occur several times."""

    train: list[str] = Field(min_length=1)
    """Training files; words that are also in `valid` are left out."""
    valid: list[str] = Field(min_length=1)
    """Validation files: they select the best checkpoint."""
    test: list[str] = Field(default_factory=list)
    """Test files, used for the final score and by `saccade evaluate`."""


class PronunciationRecipe(SequenceRecipe):
    task: Literal["pronunciation"] = "pronunciation"
    data: DictionaryData
    tokens: TokensConfig = TokensConfig(kind="characters")


class PronunciationTask:
    """The task of pronouncing, for the commands."""

    name: ClassVar[str] = "pronunciation"
    recipe: ClassVar[type[Recipe]] = PronunciationRecipe

    def recipe_for(self, files: Sequence[Path], out: Path) -> tuple[PronunciationRecipe, list[str]]:
        raise WrongUse("pronouncing is trained by a recipe, which names a dictionary: see pronouncer")

    def prepare(
        self,
        recipe: PronunciationRecipe,
        folders: Sequence[Path],
        out: Path,
        *,
        resume: bool,
        report: Report = unreported,
    ) -> Prepared:
        data = recipe.data
        held = _read(data.valid, folders)
        words = {word for word, _ in held}
        tested = _read(data.test, folders)
        parts = SequenceParts(
            training=lambda: Copies(Mixture.of([pair for pair in _read(data.train, folders) if pair[0] not in words])),
            held={"": held},
            figures=_figures,
            figure=lambda pipeline: _figure(pipeline, held),
            files=[*data.train, *data.valid, *data.test],
            test=(lambda pipeline, _, report: _scores(pipeline, tested, Request(), report)) if tested else None,
            carried=(lambda: _carried(tested)) if tested else None,
        )
        return prepare_pairs(recipe, parts, out, resume=resume, report=report)

    def evaluate(
        self,
        pipeline: Pronouncer,
        folder: ModelFolder,
        files: Sequence[Path],
        folders: Sequence[Path],
        request: Request,
        *,
        lowercase: bool | None = None,
        report: Report = unreported,
    ) -> list[Score]:
        """Word and phoneme error rate, by the nearest of the accepted pronunciations."""
        data = DictionaryData.read(folder.table("data"), where=str(folder.path / "config.json"))
        if not files and not data.test:
            raise WrongUse(f"{folder.path}: names no test part; give files: saccade evaluate MODEL FILES")
        pairs = _read([str(file.resolve()) for file in files] or data.test, folders)
        return _scores(pipeline, pairs, request, report)


def _figures(sources: list[str], outputs: list[str], accepted: list[list[str]]) -> dict[str, float]:  # noqa: ARG001
    said = [as_phonemes(output) for output in outputs]
    right = [[as_phonemes(one) for one in some] for some in accepted]
    rates = {"wer": word_error_rate, "per": phoneme_error_rate}
    return {name: rate(said, right, bootstrap=0).value for name, rate in rates.items()}


def _figure(pipeline: Pronouncer, pairs: Sequence[Pair]) -> Figure:
    wrong, *_ = _scores(pipeline, pairs, Request(), unreported)
    return Figure(wrong.name, wrong.value, -1.0)


def _scores(pipeline: Pronouncer, pairs: Sequence[Pair], request: Request, report: Report) -> list[Score]:
    words, accepted = by_source(pairs)
    said = [one.text for one in answered(pipeline, words, request, report)]
    return pronunciation_scores(said, [[as_phonemes(one) for one in some] for some in accepted])


def _carried(pairs: Sequence[Pair]) -> CarriedTest:
    return CarriedTest("test.tsv.xz", "".join(f"{word}\t{as_phonemes(signs)}\n" for word, signs in pairs))


def _read(names: Sequence[str], folders: Sequence[Path]) -> list[Pair]:
    """Words as they are spelt, and their phonemes as signs."""
    pairs: list[Pair] = []
    for name in names:
        path = find(name, folders)
        for number, word, phonemes in read_dictionary(path):
            try:
                pairs.append((word, as_signs(phonemes)))
            except KeyError as error:
                raise UserError(f"{path}, line {number}: {error.args[0]!r} is no phoneme of ARPAbet") from None
    return pairs
