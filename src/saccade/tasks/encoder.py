"""Which encoder a task stands on: one from scratch, or one that was trained before, with its vocabulary."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
from pydantic import BeforeValidator, Field, model_validator
from torch import nn

from saccade.errors import UserError
from saccade.folder import ModelFolder, read_folder
from saccade.models.bert import Bert, BertConfig
from saccade.models.contract import TextEncoder
from saccade.models.xlnet import XlnetConfig, build_xlnet
from saccade.nn.dropout import TokenDropout
from saccade.tasks.contract import Recipe
from saccade.tasks.load import model_path
from saccade.tokens.marks import END
from saccade.tokens.vocabulary import TokensConfig, Vocabulary, read_vocabulary, train_vocabulary


def _bert_unless_said(table: Any) -> Any:
    return {"kind": "bert"} | table if isinstance(table, dict) else table


TextEncoderConfig = Annotated[
    Annotated[BertConfig | XlnetConfig, Field(discriminator="kind")], BeforeValidator(_bert_unless_said)
]
"""What reads: kind = "bert" or "xlnet"."""


class EncoderRecipe(Recipe):
    """What recipes say that put a head on an encoder."""

    init: str = ""
    """A model to start from, by name or folder: its vocabulary, sizes and weights; nothing means from scratch."""
    tokens: TokensConfig = TokensConfig(vocabulary=4096)
    """The vocabulary, from scratch."""
    model: TextEncoderConfig = BertConfig(norm="pre", context=256, segments=2)
    """The encoder, from scratch."""
    dropout: float = Field(0.1, ge=0, lt=1)
    """In the encoder and before the output layer."""
    hidden: float = Field(0.0, ge=0, lt=1)
    """Share of the tokens that the mask stands for in training, drawn anew each time."""
    most: int = Field(0, ge=0)
    """Train on so many examples only, drawn by the seed; 0 is all."""

    @model_validator(mode="after")
    def _one_beginning(self) -> "EncoderRecipe":
        for part in ("tokens", "model"):
            if self.init and getattr(self, part) != type(self).model_fields[part].default:
                raise ValueError(f"init = {self.init!r} brings its own {part}; leave {part} out, or init")
        return self

    def chosen(self, examples: int) -> list[int]:
        """Which of so many examples are trained on."""
        if not 0 < self.most < examples:
            return list(range(examples))
        order: list[int] = np.random.default_rng([self.train.seed, 2]).permutation(examples)[: self.most].tolist()
        return order


@dataclass(frozen=True)
class Beginning:
    """Where a training begins."""

    config: BertConfig | XlnetConfig
    vocabulary: Vocabulary
    weights: dict[str, np.ndarray]
    """By name; none from scratch."""

    def fill(self, model: nn.Module) -> None:
        """Give the model what it shares with what was trained before: the encoder, and what else has the same name."""
        mine = dict(model.named_parameters())
        with torch.no_grad():
            for name, weight in self.weights.items():
                if name in mine and mine[name].shape == weight.shape:
                    mine[name].copy_(torch.from_numpy(weight))


def begin(recipe: EncoderRecipe, texts: Iterable[str], out: Path, *, resume: bool) -> Beginning:
    """The encoder's sizes and vocabulary, which is written to `out`; from scratch, it is learnt from the texts."""
    path = out / "tokenizer.json"
    if recipe.init:
        folder = read_folder(model_path(recipe.init))
        config = encoder_config(folder).model_copy(update={"dropout": recipe.dropout})
        path.write_text(folder.tokenizer, encoding="utf-8")
        return Beginning(config, read_vocabulary(folder.tokenizer, path, spaced=False), folder.weights)
    config = recipe.model.model_copy(update={"dropout": recipe.dropout})
    if resume and path.exists():
        return Beginning(config, read_vocabulary(path.read_text(encoding="utf-8"), path, spaced=False), {})
    vocabulary = train_vocabulary(recipe.tokens, texts, spaced=False)
    vocabulary.save(path)
    return Beginning(config, vocabulary, {})


def hiding(recipe: EncoderRecipe, vocabulary: Vocabulary) -> TokenDropout:
    return TokenDropout(recipe.hidden, mask=len(vocabulary), first=END + 1)


def encoder_config(folder: ModelFolder) -> BertConfig | XlnetConfig:
    """The sizes of a model folder's encoder; a model without one cannot be started from."""
    kind, where = folder.config["model"].get("kind"), str(folder.path / "config.json")
    match kind:
        case "bert":
            return BertConfig.read(folder.config["model"], where=where)
        case "xlnet":
            return XlnetConfig.read(folder.config["model"], where=where)
    raise UserError(f"{folder.path}: its model is {kind!r}; init needs an encoder, as bert-mini has one")


def build_text_encoder(config: BertConfig | XlnetConfig, vocabulary: Vocabulary) -> TextEncoder:
    """One id more than the vocabulary has: that of the mask."""
    if isinstance(config, XlnetConfig):
        return build_xlnet(config, len(vocabulary) + 1).encoder
    return Bert(config, len(vocabulary) + 1)
