"""The shared part of all text-to-text tasks: from pairs of texts to a trained encoder and decoder."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from pydantic import Field
from torch import nn

from saccade.arch.encoder_decoder import EncoderDecoderConfig
from saccade.config import Record
from saccade.data.batches import SequencePairs
from saccade.data.copies import Copies, encode_copies
from saccade.data.prepared import keep, kept
from saccade.data.ragged import Ragged, in_order
from saccade.data.sampler import Sampler
from saccade.data.sources import Mixture
from saccade.data.text import Pair
from saccade.decode.search import SearchConfig
from saccade.errors import UserError
from saccade.evaluate.metrics import Score
from saccade.folder import ModelFolder, Storage
from saccade.models.answering import sequence_runtime
from saccade.models.encdec import EncoderDecoder, build_encoder_decoder
from saccade.pipelines.pipeline import Pipeline, Report, Request, unreported
from saccade.pipelines.translator import Translator
from saccade.tasks.contract import Recipe
from saccade.tasks.store import kept_vocabulary, store
from saccade.tokens.marks import Marks
from saccade.tokens.vocabulary import TokensConfig, Vocabulary, train_vocabulary
from saccade.train.loop import Outcome, Work
from saccade.train.objective import SequenceObjective

LONGEST_VALIDATED = 1000
"""Validation pairs that are longer than this, in tokens of a side, do not count in the loss."""


class SequenceData(Record):
    """Settings that all tasks on pairs share."""

    renamed: ClassVar[Mapping[str, str]] = {"longest": "longest_pair"}

    longest_pair: int = Field(250, ge=1)
    """Longest training pair, in tokens of its longer side; longer pairs are left out and counted."""


class SequenceRecipe(Recipe):
    """The part of a recipe that all tasks on pairs of texts share."""

    data: SequenceData
    tokens: TokensConfig = TokensConfig()
    model: EncoderDecoderConfig = EncoderDecoderConfig()
    search: SearchConfig = SearchConfig()
    storage: Storage = "float16"
    """Number format of the stored weights."""
    layer: int | None = Field(None, ge=1)
    """Cross-attention layer that `--look` draws by default; without it, the middle layer."""


class SequenceTask(ABC):
    """A task defines its training pairs, its scores and its pipeline."""

    name: ClassVar[str]
    recipe: ClassVar[type[Recipe]]

    @abstractmethod
    def training_pairs(self, recipe: Any, folders: Sequence[Path]) -> list[Pair]:
        """Training pairs."""

    def training_copies(self, recipe: Any, folders: Sequence[Path]) -> Copies:
        """The training pairs as the epochs go through them: one copy, as it is."""
        return Copies(Mixture.of(self.training_pairs(recipe, folders)))

    @abstractmethod
    def held_pairs(self, recipe: Any, folders: Sequence[Path]) -> dict[str, list[Pair]]:
        """Validation pairs by the name of their source; a single source needs no name."""

    @abstractmethod
    def figures(
        self, recipe: Any, sources: list[str], outputs: list[str], accepted: list[list[str]]
    ) -> dict[str, float]:
        """Scores of greedy outputs, each against all accepted targets of its source."""

    @abstractmethod
    def has_test(self, recipe: Any) -> bool:
        """Whether the recipe names a test part."""

    def settings(self, recipe: Any) -> dict[str, Any]:
        """More settings for config.json."""
        return {}

    def words(self, recipe: Any, folders: Sequence[Path]) -> list[str] | None:
        """The lexicon of its models; None: no lexicon."""
        return None

    def prepare(
        self, recipe: Any, folders: Sequence[Path], out: Path, *, resume: bool, report: Report = unreported
    ) -> tuple[Work, list[str]]:
        path = out / "tokenizer.json"
        arrays = kept(out / "prepared") if resume and path.exists() else None
        copies = None if arrays else self.training_copies(recipe, folders)
        if copies is None or (resume and path.exists()):
            vocabulary = kept_vocabulary(out, source_bytes=recipe.tokens.source_bytes)
        else:
            joined = (pair[recipe.tokens.source_bytes :] for pair in copies.plain_pairs(copies.count - 1))
            vocabulary = train_vocabulary(recipe.tokens, (text for texts in joined for text in texts))
            vocabulary.save(path)
        if copies is not None:
            arrays = keep(out / "prepared", encode_copies(vocabulary, copies, recipe.data.longest_pair, report))
        assert arrays is not None
        torch.manual_seed(recipe.train.seed)
        model = build_encoder_decoder(recipe.model, len(vocabulary))
        examples, numbers = _pairs(arrays, vocabulary.marks), arrays["numbers"]
        starts = arrays.get("starts", np.zeros(1, dtype=np.int64)).tolist()
        sampler = Sampler(*examples.sizes(), budget=recipe.train.batch_tokens, seed=recipe.train.seed, starts=starts)
        work = Work(
            model=model,
            objective=SequenceObjective(recipe.train.smoothing),
            sampler=sampler,
            batch=examples.batch,
            validate=_Validation(self, vocabulary, self.held_pairs(recipe, folders), recipe),
            describe=lambda indices: _describe(indices, examples, numbers, vocabulary),
        )
        left_out = int(arrays["count"]) - len(examples)
        real_source, real_target = sampler.fill()
        copies_told = f" in {len(starts)} copies" if len(starts) > 1 else ""
        told = [
            *(copies.mixture.messages if copies is not None else []),
            f"{len(examples):,} training pairs{copies_told}, {int(sampler.target.sum()):,} target tokens"
            + (f"; {left_out:,} longer than {recipe.data.longest_pair} tokens left out" if left_out else ""),
            f"vocabulary {len(vocabulary):,}, {sum(w.numel() for w in model.parameters()):,} parameters, "
            + self.told_of_steps(recipe, sampler),
            f"batches of at most {recipe.train.batch_tokens:,} tokens a side: {real_target:.1%} of the target and "
            f"{real_source:.1%} of the source positions are real, the rest is padding",
        ]
        return work, told

    def told_of_steps(self, recipe: Any, sampler: Sampler) -> str:
        """How often the steps go through the data."""
        epochs = sum(share for _, share in sampler.epochs(recipe.train.steps * recipe.train.accumulate))
        return f"{recipe.train.steps:,} steps = {epochs:.1f} epochs"

    def finish(
        self, recipe: Any, work: Work, outcome: Outcome, folders: Sequence[Path], out: Path, report: Report = unreported
    ) -> list[Score]:
        settings = {
            "model": recipe.model.table(),
            "search": recipe.search.table(),
            "data": recipe.data.table(),
            "source_bytes": recipe.tokens.source_bytes,
            **self.settings(recipe),
            "layer": recipe.layer or max(1, (recipe.model.decoder.looks + 1) // 2),
        }
        return store(
            *(self, recipe, settings, work, outcome, out),
            marks=kept_vocabulary(out, source_bytes=recipe.tokens.source_bytes).marks,
            storage=recipe.storage,
            test=folders if self.has_test(recipe) else None,
            report=report,
            words=self.words(recipe, folders),
        )

    @abstractmethod
    def recipe_for(self, files: Sequence[Path], out: Path) -> tuple[Any, list[str]]:
        """A recipe for the user's own files, and messages about the choices."""

    @abstractmethod
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
        """Scores on the given files, or without files on the test part of the recipe."""


class _Validation:
    """Loss per token, and the task's own figures of greedy outputs, on the validation part.

    With several sources a figure is the mean over them, so that a source counts by its kind and not by its length; the
    figures of each source follow, as `bleu.tatoeba`.
    """

    def __init__(self, task: SequenceTask, vocabulary: Vocabulary, held: dict[str, list[Pair]], recipe: Any) -> None:
        self.task, self.vocabulary, self.recipe = task, vocabulary, recipe
        self.held = {
            name: (
                _pairs(encode_copies(vocabulary, Copies(Mixture.of(pairs)), LONGEST_VALIDATED), vocabulary.marks),
                *by_source(pairs),
            )
            for name, pairs in held.items()
        }
        self.objective = SequenceObjective()

    def __call__(self, model: nn.Module) -> dict[str, float]:
        assert isinstance(model, EncoderDecoder)
        translator = Translator(sequence_runtime(model), self.vocabulary, self.recipe.search)
        found = {}
        for name, (examples, sources, accepted) in self.held.items():
            outputs = [translation.text for translation in translator(sources, beam=1)]
            figures = self.task.figures(self.recipe, sources, outputs, accepted)
            found[name] = {"loss": self._loss(model, examples)} | figures
        names = list(next(iter(found.values())))
        means = {figure: sum(one[figure] for one in found.values()) / len(found) for figure in names}
        if len(found) == 1:
            return means
        return means | {f"{figure}.{name}": one[figure] for figure in names for name, one in found.items()}

    def _loss(self, model: EncoderDecoder, examples: SequencePairs) -> float:
        total, count = 0.0, 0
        for indices in in_order(examples.sizes()[1], 4096):
            loss, items = self.objective(model, examples.batch(indices))["loss"]
            total, count = total + loss.item(), count + items
        return total / count


def by_source(pairs: Sequence[Pair]) -> tuple[list[str], list[list[str]]]:
    """Each source once, with all its accepted targets."""
    accepted: dict[str, list[str]] = {}
    for source, target in pairs:
        accepted.setdefault(source, []).append(target)
    return list(accepted), list(accepted.values())


def answered(pipeline: Pipeline[Any, Any], sources: Sequence[str], request: Request, report: Report) -> list[str]:
    """The output for every source; the first that cannot be read is an error."""
    outputs = []
    for answer in pipeline.answer(sources, request, report=report):
        if isinstance(answer, UserError):
            raise answer
        outputs.append(answer.text)
    return outputs


def _pairs(arrays: dict[str, np.ndarray], marks: Marks) -> SequencePairs:
    source, target = (Ragged(arrays[side], arrays[f"{side}_lengths"]) for side in ("source", "target"))
    return SequencePairs(source, target, marks)


def _describe(indices: np.ndarray, examples: SequencePairs, numbers: np.ndarray, vocabulary: Vocabulary) -> str:
    first = [vocabulary.decode(side[int(indices[0])].tolist())[:60] for side in (examples.source, examples.target)]
    shown = ", ".join(str(int(numbers[i]) + 1) for i in indices[:5])
    return f"of {len(indices)} pairs (numbers {shown}, …; the first is {first[0]!r} / {first[1]!r})"
