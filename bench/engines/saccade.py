"""Saccade: its own model, objective and optimiser, as its training loop uses them."""

import numpy as np
import torch

from bench.engines.contract import SIZE, Batch, Engine, MarkIds, run
from saccade import __version__
from saccade.arch.encoder_decoder import EncoderDecoderConfig, StackConfig
from saccade.data.batches import SequenceBatch
from saccade.models.encdec import EncoderDecoder, build_encoder_decoder
from saccade.train.objective import SequenceObjective
from saccade.train.optim import AdamConfig, build_optimizer
from saccade.train.parts import BatchParts
from saccade.train.precision import kind_of_products


def build_model(vocabulary: int, dropout: float = SIZE.dropout, positions: str = "sinusoidal") -> EncoderDecoder:
    stack = StackConfig.model_validate(
        {
            "layers": SIZE.layers,
            "width": SIZE.width,
            "heads": SIZE.heads,
            "feedforward": SIZE.feedforward,
            "dropout": dropout,
            "positions": {"kind": positions},
        }
    )
    return build_encoder_decoder(EncoderDecoderConfig(encoder=stack, decoder=stack), vocabulary)


def build(vocabulary: int, marks: MarkIds) -> Engine:  # noqa: ARG001  a batch says what is padding
    return wrap(build_model(vocabulary))


def wrap(model: EncoderDecoder, muon: float = 0.0) -> Engine:
    objective = SequenceObjective(SIZE.smoothing)
    kind = kind_of_products("auto")
    adam = AdamConfig(rate=SIZE.rate, betas=SIZE.betas, epsilon=SIZE.epsilon)
    optimizer = build_optimizer(model, adam, muon, kind=kind)
    parts = BatchParts(model, objective, kind=kind)

    def backward(batch: Batch) -> float:
        numbers = np.arange(len(batch.labels_BT))
        whole = SequenceBatch(
            batch.source_BS, batch.source_mask_BS, batch.target_BT, batch.labels_BT, batch.real_BT, numbers
        )
        batches = [whole.rows(chosen) for chosen in parts.split(numbers)]
        count = sum(objective.count(part) for part in batches)
        return sum(losses["loss"] for losses in parts.add_gradients(batches, count))

    rounded = ", products in bfloat16" if kind == torch.bfloat16 else ""
    return Engine(f"saccade {__version__}{rounded}", model, backward, optimizer)


if __name__ == "__main__":
    run(build)
