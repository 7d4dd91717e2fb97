"""Random weights as model folders: drawn once, so that every engine in every process reads the same ones."""

from pathlib import Path

import torch
from torch import nn

from saccade.config import Record
from saccade.weights import write_folder

SEED = 1


@torch.no_grad()
def draw_weights(model: nn.Module) -> None:
    """Weights under which a mistake shows: no bias is zero, no gain one, and blocks change what they are given.

    Token vectors are small beside what the blocks add. Otherwise a model whose output layer is its token vectors would
    repeat its last token for ever, and two engines would agree without having computed the same.
    """
    torch.manual_seed(SEED)
    for name, weight in model.named_parameters():
        if weight.ndim == 1:
            weight.normal_(0.0, 0.02) if name.endswith("bias") else weight.normal_(1.0, 0.1)
        else:
            weight.normal_(0.0, 0.02 if "embed." in name else weight.shape[1] ** -0.5)


def write_random(folder: Path, config: Record, model: nn.Module) -> None:
    """A model folder in float32, without a vocabulary: nobody reads words here."""
    write_folder(folder, {"task": "bench", "model": config.table()}, model, "{}", storage="float32")
