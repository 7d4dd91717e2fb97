"""What all tasks share that write a text for a text: from pairs of texts to a trained encoder and decoder."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from pydantic import Field
from torch import nn

from saccade.config import Record
from saccade.data.batches import SequencePairs
from saccade.data.prepared import keep, kept
from saccade.data.ragged import Ragged, in_order
from saccade.data.sampler import Sampler
from saccade.data.text import Pair
from saccade.decode.packed import How
from saccade.decode.search import SearchConfig
from saccade.errors import UserError
from saccade.evaluate.metrics import Score
from saccade.folder import ModelFolder, Storage
from saccade.models.encdec import EncoderDecoder, EncoderDecoderConfig, build_encoder_decoder
from saccade.tasks.asked import Report, Request, unreported
from saccade.tasks.contract import Recipe
from saccade.tasks.store import store
from saccade.tasks.translator import Translator
from saccade.tokens.vocabulary import TokensConfig, Vocabulary, read_vocabulary, train_vocabulary
from saccade.train.loop import Outcome, Work


class SequenceData(Record):
    """What every task says of its pairs."""

    longest: int = Field(250, ge=1)
    """Training pairs with more tokens on a side are left out, and counted."""


class SequenceRecipe(Recipe):
    """What recipes say that train an encoder and a decoder on pairs of texts."""

    data: SequenceData
    tokens: TokensConfig = TokensConfig()
    model: EncoderDecoderConfig = EncoderDecoderConfig()
    search: SearchConfig = SearchConfig()
    storage: Storage = "float16"
    """How the trained weights are stored."""
    layer: int | None = Field(None, ge=1)
    """The cross-attention layer that `--look` draws by default; the middle one if not said."""


class SequenceTask(ABC):
    """A task says which pairs it learns from, which figures judge it, and what its pipeline adds to writing."""

    name: ClassVar[str]
    recipe: ClassVar[type[Recipe]]
    pipeline: ClassVar[type[Translator]] = Translator

    @abstractmethod
    def training_pairs(self, recipe: Any, folders: Sequence[Path]) -> list[Pair]:
        """What is trained on."""

    @abstractmethod
    def held_pairs(self, recipe: Any, folders: Sequence[Path]) -> list[Pair]:
        """What decides which weights are kept."""

    @abstractmethod
    def figures(
        self, recipe: Any, sources: list[str], outputs: list[str], accepted: list[list[str]]
    ) -> dict[str, float]:
        """How good greedy outputs are, each with all that is accepted for its source."""

    @abstractmethod
    def has_test(self, recipe: Any) -> bool:
        """Whether the recipe names a test part."""

    def settings(self, recipe: Any) -> dict[str, Any]:
        """What config.json says beside model, search and data."""
        return {}

    def words(self, recipe: Any, folders: Sequence[Path]) -> list[str] | None:
        """The words its models keep to when they write; None: any."""
        return None

    def prepare(self, recipe: Any, folders: Sequence[Path], out: Path, *, resume: bool) -> tuple[Work, list[str]]:
        from saccade.train.objective import SequenceObjective  # who only answers need not wait for all kinds of models

        path = out / "tokenizer.json"
        arrays = kept(out / "prepared") if resume and path.exists() else None
        training = [] if arrays else self.training_pairs(recipe, folders)
        if resume and path.exists():
            vocabulary = read_vocabulary(path.read_text(encoding="utf-8"), path, spelt=recipe.tokens.spelt)
        else:
            joined = (pair[recipe.tokens.spelt :] for pair in training)
            vocabulary = train_vocabulary(recipe.tokens, (text for texts in joined for text in texts))
            vocabulary.save(path)
        if arrays is None:
            arrays = keep(out / "prepared", _encode(vocabulary, training, recipe.data.longest))
        torch.manual_seed(recipe.train.seed)
        model = build_encoder_decoder(recipe.model, len(vocabulary))
        examples, numbers = _pairs(arrays), arrays["numbers"]
        source_sizes, target_sizes = examples.sizes()
        sampler = Sampler(source_sizes, target_sizes, budget=recipe.train.batch_tokens, seed=recipe.train.seed)
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
        epochs = recipe.train.steps * recipe.train.accumulate / len(sampler.batches)
        told = [
            f"{len(examples):,} training pairs, {int(target_sizes.sum()):,} target tokens"
            + (f"; {left_out:,} longer than {recipe.data.longest} tokens left out" if left_out else ""),
            f"vocabulary {len(vocabulary):,}, {sum(w.numel() for w in model.parameters()):,} parameters, "
            f"{recipe.train.steps:,} steps = {epochs:.1f} epochs",
            f"batches of at most {recipe.train.batch_tokens:,} tokens a side: {real_target:.1%} of the target and "
            f"{real_source:.1%} of the source positions are real, the rest is padding",
        ]
        return work, told

    def finish(
        self, recipe: Any, work: Work, outcome: Outcome, folders: Sequence[Path], out: Path, report: Report = unreported
    ) -> list[Score]:
        settings = {
            "model": recipe.model.table(),
            "search": recipe.search.table(),
            "data": recipe.data.table(),
            "spelt": recipe.tokens.spelt,
            **self.settings(recipe),
            "layer": recipe.layer or max(1, (recipe.model.decoder.looks + 1) // 2),
        }
        test = folders if self.has_test(recipe) else None
        words = self.words(recipe, folders)
        return store(
            self, recipe, settings, work, outcome, out, storage=recipe.storage, test=test, report=report, words=words
        )

    def load(self, folder: ModelFolder, how: How | None = None) -> Translator:
        return self.pipeline.open(folder, how)

    @abstractmethod
    def recipe_for(self, files: Sequence[Path], out: Path) -> tuple[Any, list[str]]:
        """A recipe for a stranger's own files, and what was chosen, to be told."""

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
        """The figures of a model on held-out files, or, where none are given, on the test part its recipe names."""


class _Validation:
    """Loss per token, and the task's own figures of greedy outputs, on the validation part."""

    def __init__(self, task: SequenceTask, vocabulary: Vocabulary, pairs: list[Pair], recipe: Any) -> None:
        from saccade.train.objective import SequenceObjective

        self.task, self.vocabulary, self.recipe = task, vocabulary, recipe
        self.examples = _pairs(_encode(vocabulary, pairs, 1000))
        self.sources, self.accepted = by_source(pairs)
        self.objective = SequenceObjective()

    def __call__(self, model: nn.Module) -> dict[str, float]:
        assert isinstance(model, EncoderDecoder)
        total, count = 0.0, 0
        for indices in in_order(self.examples.sizes()[1], 4096):
            loss, items = self.objective(model, self.examples.batch(indices))["loss"]
            total, count = total + loss.item(), count + items
        translator = Translator.of(model, self.vocabulary, self.recipe.search)
        outputs = [translation.text for translation in translator(self.sources, beam=1)]
        return {"loss": total / count} | self.task.figures(self.recipe, self.sources, outputs, self.accepted)


def by_source(pairs: Sequence[Pair]) -> tuple[list[str], list[list[str]]]:
    """Each source once, with all that is accepted for it."""
    accepted: dict[str, list[str]] = {}
    for source, target in pairs:
        accepted.setdefault(source, []).append(target)
    return list(accepted), list(accepted.values())


def answered(pipeline: Translator, sources: Sequence[str], request: Request, report: Report) -> list[str]:
    """What is written for every source; the first that cannot be read is an error."""
    outputs = []
    for answer in pipeline.answer(sources, request, report=report):
        if isinstance(answer, UserError):
            raise answer
        outputs.append(answer.text)
    return outputs


def _encode(vocabulary: Vocabulary, pairs: Sequence[Pair], longest: int) -> dict[str, np.ndarray]:
    """The pairs as ids in flat arrays; those too long on a side are left out, `numbers` says which are there."""
    sources = vocabulary.read([source for source, _ in pairs])
    targets = vocabulary.encode([target for _, target in pairs])
    numbers = [i for i in range(len(pairs)) if len(sources[i]) <= longest and len(targets[i]) <= longest]
    if not numbers:
        raise UserError(f"all {len(pairs)} sentence pairs are longer than {longest} tokens; set data.longest higher")
    source, target = (Ragged.of([side[i] for i in numbers]) for side in (sources, targets))
    return {
        "source": source.flat,
        "source_lengths": source.lengths,
        "target": target.flat,
        "target_lengths": target.lengths,
        "numbers": np.array(numbers),
        "count": np.array(len(pairs)),
    }


def _pairs(arrays: dict[str, np.ndarray]) -> SequencePairs:
    return SequencePairs(
        Ragged(arrays["source"], arrays["source_lengths"]), Ragged(arrays["target"], arrays["target_lengths"])
    )


def _describe(indices: np.ndarray, examples: SequencePairs, numbers: np.ndarray, vocabulary: Vocabulary) -> str:
    first = [vocabulary.decode(side[int(indices[0])].tolist())[:60] for side in (examples.source, examples.target)]
    shown = ", ".join(str(int(numbers[i]) + 1) for i in indices[:5])
    return f"of {len(indices)} pairs (numbers {shown}, …; the first is {first[0]!r} / {first[1]!r})"
