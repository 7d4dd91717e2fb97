"""The shared part of all text-to-text tasks: from pairs of texts to a trained encoder and decoder."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from pydantic import Field, model_validator
from torch import nn

from saccade.arch.encoder_decoder import EncoderDecoderConfig, StackConfig
from saccade.carried import CarriedTest
from saccade.config import Record, Table
from saccade.data.batches import SequencePairs
from saccade.data.copies import Copies, encode_copies
from saccade.data.prepared import keep, kept
from saccade.data.ragged import Ragged, in_order
from saccade.data.sampler import Sampler
from saccade.data.sources import Mixture
from saccade.data.text import Pair
from saccade.data.translation_table import learn_table
from saccade.decode.search import SearchConfig
from saccade.errors import UserError
from saccade.folder import Storage
from saccade.models.answering import sequence_runtime
from saccade.models.encdec import EncoderDecoder, build_encoder_decoder
from saccade.pipelines.pipeline import One, Pipeline, Report, Request, unreported
from saccade.pipelines.translator import Translator
from saccade.tasks.arithmetic import FigureOf
from saccade.tasks.contract import Prepared, Recipe, Test
from saccade.tasks.sequence_start import SequenceStart, write_vocabulary
from saccade.tasks.store import kept_vocabulary
from saccade.tokens.marks import Marks
from saccade.tokens.vocabulary import TokensConfig, Vocabulary, train_vocabulary
from saccade.train.alignment import AlignmentHead
from saccade.train.loop import Work
from saccade.train.objective import SequenceObjective

LONGEST_VALIDATED = 1000
"""Validation pairs that are longer than this, in tokens of a side, do not count in the loss."""


class SequenceData(Record):
    """Settings that all tasks on pairs share."""

    renamed: ClassVar[Mapping[str, str]] = {"longest": "longest_pair"}

    longest_pair: int = Field(250, ge=1)
    """Longest training pair, in tokens of its longer side; longer pairs are left out and counted."""


class AlignmentConfig(Record):
    """A head of cross-attention that is taught to align words beside the translation, for `saccade align`."""

    layer: int = Field(1, ge=1)
    """Cross-attention layer, counted from 1."""
    head: int = Field(1, ge=1)
    """Counted from 1."""
    weight: float = Field(0.05, gt=0, le=10)
    """Of its loss beside that of the translation (0.05 in Garg et al. 2019)."""


class SequenceRecipe(Recipe):
    """The part of a recipe that all tasks on pairs of texts share."""

    data: SequenceData
    init: str = ""
    """Model to start from, by name or folder: its vocabulary, sizes and weights. Empty: train from scratch."""
    own_vocabulary: bool = False
    """With `init`: learn a vocabulary from the training data; pieces that both have start from `init`'s vectors."""
    dropout: float | None = Field(None, ge=0, lt=1)
    """With `init`: dropout, instead of that of its model."""
    tokens: TokensConfig = TokensConfig()
    model: EncoderDecoderConfig = EncoderDecoderConfig()
    search: SearchConfig = SearchConfig()
    storage: Storage = "float16"
    """Number format of the stored weights."""
    alignment: AlignmentConfig | None = None
    """Teach a head to align, by a table of which tokens translate each other; without it, none."""
    layer: int | None = Field(None, ge=1)
    """Cross-attention layer that `--look` draws by default; without it, the middle layer."""

    @model_validator(mode="after")
    def _one_beginning(self) -> "SequenceRecipe":
        for part in ("model",) if self.own_vocabulary else ("model", "tokens"):
            if self.init and getattr(self, part) != type(self).model_fields[part].default:
                raise ValueError(f"init = {self.init!r} brings its own {part}; leave {part} out, or init")
        if not self.init and (self.own_vocabulary or self.dropout is not None):
            raise ValueError("own_vocabulary and dropout go with init; without it, set tokens and model")
        return self


Figures = Callable[[list[str], list[str], list[list[str]]], dict[str, float]]
"""Sources, greedy outputs and all accepted targets of each source -> scores."""


@dataclass(frozen=True)
class SequenceParts:
    """What a task on pairs of texts has read, and what is its own in training and in the end."""

    training: Callable[[], Copies]
    """The training pairs as the epochs go through them; called only if the run keeps no encoded pairs."""
    held: Mapping[str, Sequence[Pair]]
    """Validation pairs by the name of their source; a single source needs no name."""
    figures: Figures
    figure: FigureOf
    """Of a loaded model on the validation pairs, as users get it: with the model's own search."""
    files: Sequence[str]
    """Data files, as the recipe names them."""
    split: bool = False
    """Sources are translated sentence by sentence."""
    settings: Table = field(default_factory=dict)
    """More settings for config.json."""
    test: Test | None = None
    carried: Callable[[], CarriedTest] | None = None
    words: Sequence[str] | None = None
    """Lexicon of the model, if it has one."""
    ending: Callable[[Sampler], str] = lambda _: ""
    """What the message on the number of epochs ends with."""


def prepare_pairs(
    recipe: Any, parts: SequenceParts, out: Path, *, resume: bool, report: Report = unreported
) -> Prepared:
    """From pairs of texts to an encoder and a decoder; `recipe` is a `SequenceRecipe`."""
    path = out / "tokenizer.json"
    start = SequenceStart.read(recipe.init) if recipe.init else None
    config = start.config(recipe.dropout) if start else recipe.model
    source_bytes, brought = recipe.tokens.source_bytes, start is not None and not recipe.own_vocabulary
    if start and brought:
        source_bytes = start.vocabulary.speller is not None
        write_vocabulary(start, out)
    arrays = kept(out / "prepared") if resume and path.exists() else None
    copies = None if arrays else parts.training()
    if copies is None or brought or (resume and path.exists()):
        vocabulary = kept_vocabulary(out, source_bytes=source_bytes)
    else:
        joined = (pair[source_bytes:] for pair in copies.plain_pairs(copies.count - 1))
        vocabulary = train_vocabulary(recipe.tokens, (text for texts in joined for text in texts))
        vocabulary.save(path)
    if copies is not None:
        arrays = keep(out / "prepared", encode_copies(vocabulary, copies, recipe.data.longest_pair, report))
    assert arrays is not None
    torch.manual_seed(recipe.train.seed)
    model = build_encoder_decoder(config, len(vocabulary))
    began = []
    if start:
        both = start.fill(model, vocabulary)
        began = [f"starts from {recipe.init}; {both:,} of {len(vocabulary):,} pieces of the vocabulary are in both"]
    examples, numbers = _pairs(arrays, vocabulary.marks), arrays["numbers"]
    starts = arrays.get("starts", np.zeros(1, dtype=np.int64)).tolist()
    sampler = Sampler(*examples.sizes(), budget=recipe.train.batch_tokens, seed=recipe.train.seed, starts=starts)
    work = Work(
        model=model,
        objective=SequenceObjective(recipe.train.smoothing, aligned=_aligned(recipe, config, examples, vocabulary)),
        sampler=sampler,
        batch=examples.batch,
        validate=_Validation(vocabulary, parts, recipe.search),
        describe=lambda indices: _describe(indices, examples, numbers, vocabulary),
    )
    epochs = sum(share for _, share in sampler.epochs(recipe.train.steps * recipe.train.accumulate))
    left_out = int(arrays["count"]) - len(examples)
    real_source, real_target = sampler.fill()
    copies_told = f" in {len(starts)} copies" if len(starts) > 1 else ""
    messages = [
        *(copies.mixture.messages if copies is not None else []),
        *began,
        f"{len(examples):,} training pairs{copies_told}, {int(sampler.target.sum()):,} target tokens"
        + (f"; {left_out:,} longer than {recipe.data.longest_pair} tokens left out" if left_out else ""),
        f"vocabulary {len(vocabulary):,}, {sum(w.numel() for w in model.parameters()):,} parameters, "
        f"{recipe.train.steps:,} steps = {epochs:.1f} epochs{parts.ending(sampler)}",
        f"batches of at most {recipe.train.batch_tokens:,} tokens a side: {real_target:.1%} of the target and "
        f"{real_source:.1%} of the source positions are real, the rest is padding",
    ]
    settings = {
        "model": config.table(),
        "search": recipe.search.table(),
        "data": recipe.data.table(),
        "source_bytes": source_bytes,
        **parts.settings,
        **({} if recipe.alignment is None else {"alignment": recipe.alignment.table()}),
        "layer": recipe.layer or max(1, (config.decoder.looks + 1) // 2),
    }
    return Prepared(
        work=work,
        settings=settings,
        marks=vocabulary.marks,
        storage=recipe.storage,
        messages=messages,
        files=parts.files,
        test=parts.test,
        words=parts.words,
        carried=parts.carried,
        figure=parts.figure,
    )


def _aligned(
    recipe: Any, config: EncoderDecoderConfig, examples: SequencePairs, vocabulary: Vocabulary
) -> AlignmentHead | None:
    """The head that is taught to align, if the recipe asks for one."""
    asked: AlignmentConfig | None = recipe.alignment
    if asked is None:
        return None
    decoder = config.decoder
    if not isinstance(decoder, StackConfig):
        raise UserError("alignment is a head of a Transformer decoder; this decoder is another one")
    if asked.layer > decoder.layers or asked.head > decoder.heads:
        raise UserError(
            f"alignment is of layer {asked.layer}, head {asked.head}; the decoder has {decoder.layers} layers of "
            f"{decoder.heads} heads"
        )
    table = torch.from_numpy(learn_table(examples.source, examples.target, len(vocabulary)))
    return AlignmentHead(asked.layer - 1, asked.head - 1, asked.weight, table)


class _Validation:
    """Loss per token, and the task's own figures of greedy outputs, on the validation part.

    With several sources a figure is the mean over them, so that a source counts by its kind and not by its length; the
    figures of each source follow, as `bleu.tatoeba`.
    """

    def __init__(self, vocabulary: Vocabulary, parts: SequenceParts, search: SearchConfig) -> None:
        self.vocabulary, self.search, self.figures, self.split = vocabulary, search, parts.figures, parts.split
        self.held = {
            name: (
                _pairs(encode_copies(vocabulary, Copies(Mixture.of(list(pairs))), LONGEST_VALIDATED), vocabulary.marks),
                *by_source(pairs),
            )
            for name, pairs in parts.held.items()
        }
        self.objective = SequenceObjective()

    def __call__(self, model: nn.Module) -> dict[str, float]:
        assert isinstance(model, EncoderDecoder)
        translator = Translator(sequence_runtime(model), self.vocabulary, self.search, split=self.split)
        found = {}
        for name, (examples, sources, accepted) in self.held.items():
            outputs = [translation.text for translation in translator(sources, beam=1)]
            figures = self.figures(sources, outputs, accepted)
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


def answered(pipeline: Pipeline[Any, One], sources: Sequence[str], request: Request, report: Report) -> list[One]:
    """The answer for every source; the first that cannot be read is an error."""
    answers = []
    for answer in pipeline.answer(sources, request, report=report):
        if isinstance(answer, UserError):
            raise answer
        answers.append(answer)
    return answers


def _pairs(arrays: dict[str, np.ndarray], marks: Marks) -> SequencePairs:
    source, target = (Ragged(arrays[side], arrays[f"{side}_lengths"]) for side in ("source", "target"))
    return SequencePairs(source, target, marks)


def _describe(indices: np.ndarray, examples: SequencePairs, numbers: np.ndarray, vocabulary: Vocabulary) -> str:
    first = [vocabulary.decode(side[int(indices[0])].tolist())[:60] for side in (examples.source, examples.target)]
    shown = ", ".join(str(int(numbers[i]) + 1) for i in indices[:5])
    return f"of {len(indices)} pairs (numbers {shown}, …; the first is {first[0]!r} / {first[1]!r})"
