"""How well a language model predicts a text: perplexity, and bits per byte, which do not depend on the tokens."""

import math
from dataclasses import dataclass

import torch

from saccade.data.stream import Stream
from saccade.errors import UserError
from saccade.evaluate.metrics import Score
from saccade.models.gpt import LanguageModel
from saccade.train.loss import cross_entropy

ROWS_TOKENS = 8192
"""Tokens predicted at once."""


@dataclass(frozen=True)
class Surprise:
    """The total surprise of a model at a text."""

    nats: float
    """-log p of all of it."""
    tokens: int
    context: int
    stride: int

    @property
    def loss(self) -> float:
        """Nats per token."""
        if not self.tokens:
            raise UserError("a text of fewer than two tokens has nothing to predict")
        return self.nats / self.tokens

    def scores(self, text_bytes: int) -> list[Score]:
        how = f"tokens:{self.tokens}|bytes:{text_bytes}|context:{self.context}|stride:{self.stride}"
        bits = self.nats / math.log(2) / text_bytes
        # The perplexity of an untrained model may overflow a float.
        perplexity = math.exp(min(self.loss, 700.0))
        return [
            Score("loss", self.loss, None, how, digits=4),
            Score("perplexity", perplexity, None, how),
            Score("bits per byte", bits, None, how, digits=4),
        ]


def surprise(model: LanguageModel, stream: Stream, *, stride: int | None = None) -> Surprise:
    """Every token of the stream, predicted once; by default in windows of the context that do not overlap."""
    context = model.context
    stride = stride or context
    nats, tokens = 0.0, 0
    with torch.inference_mode():
        for batch, counts in stream.windows(context, stride, rows=max(1, ROWS_TOKENS // context)):
            counts_BT = torch.from_numpy(counts)
            real_BT = counts_BT if batch.real_BT is None else counts_BT & batch.real_BT
            features_BTD = model.features(batch.tokens_BT, batch.documents_BT)
            labels_N = batch.labels_BT[real_BT]
            _, nll = cross_entropy(features_BTD[real_BT], model.decoder.head, labels_N, 0.0)
            nats, tokens = nats + nll.item(), tokens + len(labels_N)
    return Surprise(nats, tokens, context, stride)
