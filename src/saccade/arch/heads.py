"""What stands on an encoder: guessed words, a class or a number for a text, a tag for each word."""

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, model_validator

from saccade.arch.bert import BertConfig
from saccade.arch.encoder_decoder import StackConfig, reader_weights
from saccade.arch.grid import GridConfig
from saccade.arch.weights import Weights, linear, norm, tied, within
from saccade.arch.xlnet import XlnetConfig
from saccade.config import Record


def _bert_unless_said(table: object) -> object:
    return {"kind": "bert"} | table if isinstance(table, dict) else table


TextEncoderConfig = Annotated[
    Annotated[BertConfig | XlnetConfig, Field(discriminator="kind")], BeforeValidator(_bert_unless_said)
]
"""What reads: kind = "bert" or "xlnet"."""
HeadedConfig = Annotated[
    Annotated[BertConfig | XlnetConfig | StackConfig | GridConfig, Field(discriminator="kind")],
    BeforeValidator(_bert_unless_said),
]
"""What reads a text, or, with kind = "grid" or with kind = "transformer" and a front end, a picture."""
AnyHeaded = BertConfig | XlnetConfig | StackConfig | GridConfig


class WordsHead(Record):
    """Which word stood there; with BERT, perhaps also whether one text follows another."""

    next_sentence: bool = False

    def weights(self, encoder: AnyHeaded, vocabulary: int) -> Weights:
        width, tokens = encoder.width, "encoder.embed.tokens"
        if isinstance(encoder, XlnetConfig):
            return linear("head", vocabulary, width, "chosen") | tied("head", tokens, vocabulary, width, "chosen")
        return (
            linear("words.dense", width, width, "chosen")
            | norm("words.norm", width)
            | linear("words.head", vocabulary, width, "chosen")
            | tied("words.head", tokens, vocabulary, width, "chosen")
            | (pooler(width) | linear("follows", 2, width, "row") if self.next_sentence else {})
        )


class ClassHead(Record):
    """A class of a text, of a pair of texts or of a picture; with a single output, a number."""

    outputs: int = Field(ge=1)
    pooling: Literal["dense", "first", "mean"] = "dense"
    """What stands for the whole input. dense: a layer on the first position (BERT); first: that position as it is
    (ViT's class token); mean: the mean of all positions."""

    def weights(self, encoder: AnyHeaded, vocabulary: int) -> Weights:
        dense = pooler(encoder.width) if self.pooling == "dense" else {}
        return dense | linear("head", self.outputs, encoder.width, "row")


class TagsHead(Record):
    """A tag for every word."""

    outputs: int = Field(ge=1)

    def weights(self, encoder: AnyHeaded, vocabulary: int) -> Weights:
        return linear("head", self.outputs, encoder.width, "chosen")


class EncoderModel(Record):
    """An encoder with a head."""

    encoder: HeadedConfig
    head: WordsHead | ClassHead | TagsHead

    @model_validator(mode="after")
    def _head_fits(self) -> "EncoderModel":
        if isinstance(self.encoder, StackConfig | GridConfig):
            if self.encoder.front is None:
                raise ValueError("an encoder of kind 'transformer' with a head needs a front end, such as patches")
            if isinstance(self.encoder, GridConfig) and not getattr(self.head, "pooling", "") == "mean":
                raise ValueError("no field of a grid stands for all of it: a head on it has pooling = 'mean'")
            if not isinstance(self.head, ClassHead):
                raise ValueError("an encoder of pictures has no words or tags, only classes")
        return self

    @property
    def context(self) -> int:
        """Positions that it reads at once, at most."""
        if not isinstance(self.encoder, StackConfig | GridConfig):
            return self.encoder.context
        front = self.encoder.front
        return 0 if front is None or front.kind == "sound" else front.length

    def weights(self, vocabulary: int) -> Weights:
        """`vocabulary` counts the mask."""
        if isinstance(self.encoder, StackConfig | GridConfig):
            parts = reader_weights(self.encoder, vocabulary)
        else:
            parts = self.encoder.weights(vocabulary)
        return within("encoder", parts) | self.head.weights(self.encoder, vocabulary)


def pooler(width: int) -> Weights:
    """A layer on the first token, which stands for the whole text."""
    return linear("pooler.dense", width, width, "row")
