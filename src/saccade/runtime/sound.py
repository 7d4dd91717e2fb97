"""Frames of a sound in plain NumPy: convolutions that make it shorter, a projection; and pairs of states."""

import numpy as np

from saccade.arch.sound import SoundFrontEnd
from saccade.runtime.contract import Booleans, Floats, Source
from saccade.runtime.convolutions import PlainStage, Real, Stage
from saccade.runtime.layers import Weights, linear, part_of
from saccade.sites import SOURCE


class PlainSound:
    """Log-mel energies [M, T, mels] as vectors [M, T / shrinks, D]."""

    def __init__(self, config: SoundFrontEnd, weights: Weights) -> None:
        self.config = config
        self.weights = {key: weights[key] for key in weights if key.startswith("embed.project.")}
        self.stages = [
            self._stage(number, part_of(weights, f"embed.stages.{number}")) for number in range(len(config.stages))
        ]

    def __call__(self, frames_MTF: Source, mask_MT: Booleans | None = None) -> tuple[Floats, Booleans | None, None]:
        """Vectors, which of them are real, and no grid. `mask_MT` is True for the frames that are of a sound, which
        stand before the padding; a position is real if its first frame is."""
        self.config.check(frames_MTF.shape[-1])
        x: Floats = np.asarray(frames_MTF, dtype=np.float32)[..., None]
        real: Real = None
        if mask_MT is not None:
            real = np.broadcast_to(mask_MT[:, :, None, None], x.shape).astype(np.float32)
            x = x * real
        for stage in self.stages:
            x, real = stage(x, real)
        x_MSD = self._projected(x.reshape(*x.shape[:2], -1))
        return x_MSD, None if real is None else real[:, :, 0, 0] > 0, None

    def _stage(self, number: int, weights: Weights) -> Stage:
        assert self.config.grid is not None
        return PlainStage(self.config.grid, number, weights, "encoder", SOURCE)

    def _projected(self, x_MSI: Floats) -> Floats:
        return linear(self.weights, "embed.project", x_MSI)


def paired(x_MSD: Floats, mask_MS: Booleans) -> tuple[Floats, Booleans]:
    """Every two neighbours side by side, a last one beside zeros (Chan et al. 2016, 3.1); a pair is real if its first
    one is."""
    missing = x_MSD.shape[1] % 2
    x_MSD, mask_MS = np.pad(x_MSD, ((0, 0), (0, missing), (0, 0))), np.pad(mask_MS, ((0, 0), (0, missing)))
    return x_MSD.reshape(len(x_MSD), -1, 2 * x_MSD.shape[2]), mask_MS[:, ::2]


def column_logprobs(weights: Weights, states_MSD: Floats) -> Floats:
    """What the layer for CTC says of each position of a memory: log-probabilities [M, S, V], in float64."""
    logits = linear(weights, "ctc", states_MSD).astype(np.float64)
    logits -= logits.max(axis=-1, keepdims=True)
    logprobs: Floats = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
    return logprobs
