"""The encoder of a task: from scratch, or pre-trained, with its vocabulary."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
import torch
from pydantic import BeforeValidator, Field, model_validator
from torch import nn

from saccade.arch.bert import BertConfig
from saccade.arch.xlnet import XlnetConfig
from saccade.errors import UserError
from saccade.folder import ModelFolder, read_folder
from saccade.models.bert import Bert
from saccade.models.contract import TextEncoder
from saccade.models.xlnet import build_xlnet
from saccade.nn.dropout import TokenDropout
from saccade.pipelines.load import model_path
from saccade.tasks.contract import Recipe
from saccade.tasks.store import kept_vocabulary
from saccade.tokens.marks import Marks
from saccade.tokens.vocabulary import TokensConfig, Vocabulary, read_vocabulary, train_vocabulary
from saccade.train.depth import BLOCK


def _bert_unless_said(table: Any) -> Any:
    return {"kind": "bert"} | table if isinstance(table, dict) else table


TextEncoderConfig = Annotated[
    Annotated[BertConfig | XlnetConfig, Field(discriminator="kind")], BeforeValidator(_bert_unless_said)
]
"""The encoder: kind = "bert" or "xlnet"."""


class EncoderRecipe(Recipe):
    """The part of a recipe that all tasks with an encoder and a head share."""

    renamed: ClassVar[Mapping[str, str]] = {"hidden": "token_dropout", "most": "examples_limit"}

    init: str = ""
    """Model to start from, by name or folder: its vocabulary, sizes and weights. Empty: train from scratch."""
    tokens: TokensConfig = TokensConfig(vocabulary=4096)
    """The vocabulary, if trained from scratch."""
    model: TextEncoderConfig = BertConfig(norm="pre", context=256, segments=2)
    """The encoder, if trained from scratch."""
    dropout: float = Field(0.1, ge=0, lt=1)
    """Dropout in the encoder and before the output layer."""
    token_dropout: float = Field(0.0, ge=0, lt=1)
    """Share of the tokens replaced by the mask in training, drawn again for each batch."""
    fresh_layers: int = Field(0, ge=0)
    """Number of the highest blocks of `init` that are not taken over, but trained from scratch."""
    examples_limit: int = Field(0, ge=0)
    """Train on this many examples only, drawn by the seed; 0: all."""

    @model_validator(mode="after")
    def _one_beginning(self) -> "EncoderRecipe":
        for part in ("tokens", "model"):
            if self.init and getattr(self, part) != type(self).model_fields[part].default:
                raise ValueError(f"init = {self.init!r} brings its own {part}; leave {part} out, or init")
        return self

    @property
    def began(self) -> str:
        """What the training starts from, for messages."""
        return f"from {self.init}" if self.init else "from scratch (--from MODEL starts from a trained encoder)"

    def chosen(self, examples: int) -> list[int]:
        """The numbers of the examples to train on."""
        if not 0 < self.examples_limit < examples:
            return list(range(examples))
        order: list[int] = (
            np.random.default_rng([self.train.seed, 2]).permutation(examples)[: self.examples_limit].tolist()
        )
        return order


@dataclass(frozen=True)
class Beginning:
    """The start of a training: sizes, vocabulary and weights."""

    config: BertConfig | XlnetConfig
    vocabulary: Vocabulary
    weights: Mapping[str, np.ndarray]
    """By name; none from scratch."""
    fresh_layers: int = 0

    def fill(self, model: nn.Module) -> None:
        """Copy the pre-trained weights into the model where name and shape are the same. The highest layers know most
        of what they were trained for, and may be worse than none (Zhang et al. 2020)."""
        mine = dict(model.named_parameters())
        last = self.config.layers - self.fresh_layers
        with torch.no_grad():
            for name, weight in self.weights.items():
                block = BLOCK.search(name)
                fresh = block is not None and int(block[1]) >= last
                if name in mine and mine[name].shape == weight.shape and not fresh:
                    mine[name].copy_(torch.from_numpy(weight))


def begin(recipe: EncoderRecipe, texts: Iterable[str], out: Path, *, resume: bool) -> Beginning:
    """The encoder's sizes and vocabulary, which is written to `out`; from scratch, it is learnt from the texts."""
    path = out / "tokenizer.json"
    if recipe.init:
        folder = read_folder(model_path(recipe.init))
        config = encoder_config(folder).model_copy(update={"dropout": recipe.dropout})
        path.write_text(folder.tokenizer, encoding="utf-8")
        marks = Marks.read(folder.table("marks"), where=str(folder.path / "config.json"))
        vocabulary = read_vocabulary(folder.tokenizer, path, spaced=False, marks=marks)
        return Beginning(config, with_mask(vocabulary), folder.weights, recipe.fresh_layers)
    config = recipe.model.model_copy(update={"dropout": recipe.dropout})
    if resume and path.exists():
        return Beginning(config, with_mask(kept_vocabulary(out, spaced=False)), {})
    vocabulary = train_vocabulary(recipe.tokens, texts, spaced=False)
    vocabulary.save(path)
    return Beginning(config, with_mask(vocabulary), {})


def with_mask(vocabulary: Vocabulary) -> Vocabulary:
    """The same vocabulary, a mask among its marks: where it has none, the first id behind its last."""
    if vocabulary.marks.mask is None:
        vocabulary.marks = vocabulary.marks.model_copy(update={"mask": len(vocabulary)})
    return vocabulary


def hiding(recipe: EncoderRecipe, vocabulary: Vocabulary) -> TokenDropout:
    """What hides tokens in training; `vocabulary` has a mask."""
    assert vocabulary.marks.mask is not None
    return TokenDropout(recipe.token_dropout, mask=vocabulary.marks.mask, first=int(vocabulary.text_ids[0]))


def encoder_config(folder: ModelFolder) -> BertConfig | XlnetConfig:
    """The sizes of a model folder's encoder; a model without an encoder is an error."""
    kind, where = folder.config.model.get("kind"), str(folder.path / "config.json")
    match kind:
        case "bert":
            return BertConfig.read(folder.config.model, where=where)
        case "xlnet":
            return XlnetConfig.read(folder.config.model, where=where)
    raise UserError(f"{folder.path}: its model is {kind!r}; init needs an encoder, as bert-mini has one")


def build_text_encoder(config: BertConfig | XlnetConfig, vocabulary: Vocabulary) -> TextEncoder:
    """The mask has one more id than the vocabulary."""
    if isinstance(config, XlnetConfig):
        return build_xlnet(config, len(vocabulary) + 1).encoder
    return Bert(config, len(vocabulary) + 1)
