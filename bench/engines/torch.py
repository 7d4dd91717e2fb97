"""torch.nn.Transformer in a plain loop."""

import math
import warnings

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bench.engines.contract import SIZE, Batch, Engine, MarkIds, build_plain_optimizer, in_one_piece, run

LONGEST = 512


class Plain(nn.Module):
    """nn.Transformer between one embedding, used thrice, and sinusoidal positions."""

    positions: Tensor

    def __init__(self, vocabulary: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, SIZE.width)
        nn.init.normal_(self.embedding.weight, std=SIZE.width**-0.5)
        self.dropout = nn.Dropout(SIZE.dropout)
        self.register_buffer("positions", _sinusoid(LONGEST, SIZE.width))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # says that its path for inference has no pre-norm
            self.transformer = nn.Transformer(
                SIZE.width,
                SIZE.heads,
                SIZE.layers,
                SIZE.layers,
                SIZE.feedforward,
                SIZE.dropout,
                batch_first=True,
                norm_first=True,
            )
        # Its one dropout also falls on attention weights, which costs it the fused attention, and inside the
        # feed-forward network. The other engines do neither: taken out, so that all do the same work.
        for layer in [*self.transformer.encoder.layers, *self.transformer.decoder.layers]:
            layer.dropout.p = 0.0
            for attention in (module for module in layer.modules() if isinstance(module, nn.MultiheadAttention)):
                attention.dropout = 0.0

    def embed(self, tokens_BT: Tensor) -> Tensor:
        x: Tensor = self.embedding(tokens_BT) * math.sqrt(SIZE.width) + self.positions[: tokens_BT.shape[1]]
        dropped: Tensor = self.dropout(x)
        return dropped

    def forward(self, batch: Batch) -> Tensor:
        """Logits of the real positions."""
        length = batch.target_BT.shape[1]
        hidden = None if batch.source_mask_BS is None else ~batch.source_mask_BS  # torch: True = may not attend
        features_BTD = self.transformer(
            self.embed(batch.source_BS),
            self.embed(batch.target_BT),
            tgt_mask=nn.Transformer.generate_square_subsequent_mask(length),
            tgt_is_causal=True,
            src_key_padding_mask=hidden,
            memory_key_padding_mask=hidden,
        )
        return F.linear(features_BTD[batch.real_BT], self.embedding.weight)


def _sinusoid(length: int, width: int) -> Tensor:
    rates = torch.exp(torch.arange(0, width, 2) * (-math.log(10_000.0) / width))
    angles = torch.arange(length)[:, None] * rates
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2)


def build(vocabulary: int, marks: MarkIds) -> Engine:  # noqa: ARG001  padding never reaches the loss
    model = Plain(vocabulary)

    def loss(batch: Batch) -> Tensor:
        return F.cross_entropy(model(batch), batch.labels_BT[batch.real_BT], label_smoothing=SIZE.smoothing)

    return Engine(f"torch.nn.Transformer {torch.__version__}", model, in_one_piece(loss), build_plain_optimizer(model))


if __name__ == "__main__":
    run(build)
