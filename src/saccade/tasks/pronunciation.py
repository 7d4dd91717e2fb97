"""Pronunciation: trained on a dictionary; words in, phonemes out."""

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Literal

from pydantic import Field

from saccade.data.phonemes import as_phonemes, as_signs, read_dictionary
from saccade.data.text import Pair, find
from saccade.errors import UserError, WrongUse
from saccade.evaluate.metrics import Score
from saccade.evaluate.pronunciation import phoneme_error_rate, pronunciation_scores, word_error_rate
from saccade.folder import ModelFolder
from saccade.pipelines.pipeline import Report, Request, unreported
from saccade.pipelines.pronouncer import Pronouncer
from saccade.tasks.contract import Recipe
from saccade.tasks.sequence import SequenceData, SequenceRecipe, SequenceTask, answered, by_source
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


class PronunciationTask(SequenceTask):
    """The task of pronouncing, for the commands."""

    name: ClassVar[str] = "pronunciation"
    recipe: ClassVar[type[Recipe]] = PronunciationRecipe

    def recipe_for(self, files: Sequence[Path], out: Path) -> tuple[PronunciationRecipe, list[str]]:
        raise WrongUse("pronouncing is trained by a recipe, which names a dictionary: see pronouncer")

    def training_pairs(self, recipe: PronunciationRecipe, folders: Sequence[Path]) -> list[Pair]:
        held = {word for word, _ in _read(recipe.data.valid, folders)}
        return [pair for pair in _read(recipe.data.train, folders) if pair[0] not in held]

    def held_pairs(self, recipe: PronunciationRecipe, folders: Sequence[Path]) -> dict[str, list[Pair]]:
        return {"": _read(recipe.data.valid, folders)}

    def figures(
        self, recipe: PronunciationRecipe, sources: list[str], outputs: list[str], accepted: list[list[str]]
    ) -> dict[str, float]:
        said = [as_phonemes(output) for output in outputs]
        right = [[as_phonemes(one) for one in some] for some in accepted]
        rates = {"wer": word_error_rate, "per": phoneme_error_rate}
        return {name: rate(said, right, bootstrap=0).value for name, rate in rates.items()}

    def has_test(self, recipe: PronunciationRecipe) -> bool:
        return bool(recipe.data.test)

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
        words, accepted = by_source(_read([str(file.resolve()) for file in files] or data.test, folders))
        said = answered(pipeline, words, request, report)
        return pronunciation_scores(said, [[as_phonemes(one) for one in some] for some in accepted])


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
