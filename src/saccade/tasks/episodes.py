"""The shared part of all tasks that learn to act from demonstrations: what was told, seen and done, step by step."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from pydantic import Field
from torch import nn

from saccade.arch.encoder_decoder import EncoderDecoderConfig
from saccade.config import Table
from saccade.data.episodes import Episodes
from saccade.data.ragged import in_order
from saccade.data.sampler import Sampler
from saccade.errors import UserError
from saccade.folder import Storage
from saccade.models.answering import arrays_of
from saccade.models.encdec import EncoderDecoder, build_encoder_decoder
from saccade.pipelines.actor import Actor
from saccade.runtime.acting import complaint_about
from saccade.runtime.open import SequenceRuntime
from saccade.tasks.arithmetic import FigureOf
from saccade.tasks.contract import Prepared, Recipe, Test
from saccade.tokens.vocabulary import TokensConfig, Vocabulary, train_vocabulary
from saccade.train.loop import Work
from saccade.train.objective import EpisodeObjective


class EpisodesRecipe(Recipe):
    """The part of a recipe that all tasks with demonstrations share."""

    model: EncoderDecoderConfig
    """`encoders.command` reads words, `encoders.world` pictures; the decoder is recurrent."""
    blind: bool = False
    """Everything that is seen is black: what can be reached without looking."""
    storage: Storage = "float16"
    """Number format of the stored weights."""
    views_at_once: int = Field(2000, ge=1)
    """Validation steps that are computed at once."""


@dataclass(frozen=True)
class EpisodeParts:
    """What a task has read, and what is its own in training and in the end."""

    training: Episodes
    held: Episodes
    """The validation part, for its loss."""
    figures: Callable[[Actor], dict[str, float]]
    """Of what acts with the present weights: the share of validation worlds in which it does what it should."""
    figure: FigureOf | None
    files: Sequence[str]
    settings: Table
    actions: Sequence[str]
    messages: Sequence[str]
    test: Test | None = None
    start: Callable[[nn.Module], None] | None = None
    """Puts weights into the new model; None: it begins at random."""


def action_vocabulary(words: Sequence[str], actions: Sequence[str], out: Path) -> Vocabulary:
    """Of the words of commands and of the names of actions; kept in the folder of the run."""
    vocabulary = train_vocabulary(TokensConfig(kind="words"), [" ".join(words), " ".join(actions)])
    vocabulary.save(out / "tokenizer.json")
    return vocabulary


def check_model(config: EncoderDecoderConfig, view: Sequence[int]) -> None:
    """The model must be one that acts, and read views of this height, width and number of channels."""
    if complaint := complaint_about(config):
        raise UserError(f"model: {complaint}")
    front = config.readers["world"].front_end
    sizes = [getattr(front, key) for key in ("height", "width", "channels")]
    if sizes != list(view):
        raise UserError(
            f"model.encoders.world.front reads {sizes}, but views are {list(view)}: height, width, channels"
        )


def prepare_episodes(recipe: EpisodesRecipe, vocabulary: Vocabulary, parts: EpisodeParts) -> Prepared:
    """From demonstrations to what the loop needs."""
    torch.manual_seed(recipe.train.seed)
    model = build_encoder_decoder(recipe.model, len(vocabulary))
    if parts.start is not None:
        parts.start(model)
    examples = parts.training
    sampler = Sampler(*examples.sizes(), budget=recipe.train.batch_tokens, seed=recipe.train.seed)
    work = Work(
        model=model,
        objective=EpisodeObjective(recipe.train.smoothing),
        sampler=sampler,
        batch=examples.batch,
        validate=_EpisodeValidation(recipe, vocabulary, parts),
        describe=lambda indices: (
            f"of {len(indices)} episodes (the first: {vocabulary.decode(examples.commands[int(indices[0])])[:80]!r})"
        ),
    )
    epochs = sum(share for _, share in sampler.epochs(recipe.train.steps * recipe.train.accumulate))
    weights = sum(weight.numel() for weight in model.parameters())
    messages = [
        *parts.messages,
        f"{len(examples):,} episodes to train on, {int(examples.actions.lengths.sum()):,} actions; {len(parts.held):,} "
        "to choose by",
        f"vocabulary {len(vocabulary):,}, {weights:,} parameters, {recipe.train.steps:,} steps = {epochs:.1f} epochs"
        + ("; blind: what is seen is black" if recipe.blind else ""),
    ]
    return Prepared(
        work=work,
        settings={"model": recipe.model.table(), "blind": recipe.blind, **parts.settings},
        marks=vocabulary.marks,
        storage=recipe.storage,
        messages=messages,
        files=parts.files,
        test=parts.test,
        figure=parts.figure,
    )


class _EpisodeValidation:
    """Loss per action, and how often it does what it should when it acts by itself."""

    def __init__(self, recipe: EpisodesRecipe, vocabulary: Vocabulary, parts: EpisodeParts) -> None:
        self.recipe, self.vocabulary, self.parts, self.objective = recipe, vocabulary, parts, EpisodeObjective()

    def __call__(self, model: nn.Module) -> dict[str, float]:
        assert isinstance(model, EncoderDecoder)
        total, count, held = 0.0, 0, self.parts.held
        for indices in in_order(held.sizes()[1], self.recipe.views_at_once):
            loss, items = self.objective(model, held.batch(np.sort(indices)))["loss"]
            total, count = total + loss.item(), count + items
        runtime = SequenceRuntime(model.config, arrays_of(model), "exact")
        actor = Actor(runtime, self.vocabulary, self.parts.actions, blind=self.recipe.blind)
        return {"loss": total / count, **self.parts.figures(actor)}
