"""Pictures and sounds on the C kernels: patches, and convolutional stages, as `front_end.py`, `convolutions.py` and
`sound.py` have them in plain NumPy. Only the weights of the attention module are computed in NumPy: they are few."""

import ctypes

import numpy as np

from saccade import native
from saccade.arch.convolutions import ConvolutionsFrontEnd, ConvolutionStage, Pair
from saccade.arch.front_end import FrontEnd, PatchesFrontEnd
from saccade.arch.grid import GridConfig
from saccade.arch.memories import named
from saccade.arch.sound import SoundFrontEnd
from saccade.runtime.contract import ArrayMemory, Booleans, Floats, Ids, Source
from saccade.runtime.convolutions import EPSILON, Folded, PlainConvolutions, Real, Stage, every
from saccade.runtime.front_end import PlainPatches
from saccade.runtime.layers import LOWEST, Weights, part_of, softmax
from saccade.runtime.packing import Packed
from saccade.runtime.sound import PlainSound
from saccade.sites import SOURCE


def unknown_in_pictures(front: FrontEnd) -> list[str]:
    """The parts of a front end that the kernels cannot run, as recipes name them."""
    match front:
        case PatchesFrontEnd():
            return [f"patch = {front.patch}"] if front.inputs > native.MOST_INPUTS else []
        case SoundFrontEnd():
            unknown = [] if front.grid is None else unknown_in_pictures(front.grid)
            return [*unknown, f"front of {front.inputs} inputs"] if front.inputs > native.MOST_INPUTS else unknown
        case ConvolutionsFrontEnd():
            widths = [front.channels, *(stage.width for stage in front.stages)]
            inputs = zip(front.stages, widths, strict=False)
            found = [stage for stage, width in inputs if stage.kernel**2 * max(width, stage.width) > native.MOST_INPUTS]
            unknown = [f"kernel = {stage.kernel} on width {stage.width}" for stage in found]
            known = front.activation in native.ACTIVATIONS
            return unknown if known else [*unknown, f"activation = {front.activation!r}"]
    return []


class KernelConvolution:
    """A convolution with its norm, pooling and activation, and what is added at the end: one call."""

    def __init__(
        self,
        folded: Folded,
        stage: ConvolutionStage,
        channels: int,
        activation: str,
        bits: int,
        *,
        stride: Pair = (1, 1),
        pool: Pair = (1, 1),
    ) -> None:
        self.library, self.stride, self.pool = native.needed(), stride, pool
        self.packed = Packed.of(np.ascontiguousarray(folded.matrix.T), folded.bias, bits)
        self.parts = [
            np.ascontiguousarray(folded.weights[f"norm.{part}"]) for part in ("weight", "bias") if folded.weights
        ]
        norm = native.Norm(*(part.ctypes.data for part in self.parts), float(EPSILON)) if self.parts else None
        self.convolution = native.PictureConvolution(
            linear=ctypes.pointer(self.packed.layer),
            norm=None if norm is None else ctypes.pointer(norm),
            channels=channels,
            kernel=stage.kernel,
            down=stride[0],
            across=stride[1],
            pool_down=pool[0],
            pool_across=pool[1],
            activation=native.ACTIVATIONS[activation],
        )

    def __call__(self, x_MHWC: Floats, real: Real, add: Floats | None = None) -> Floats:
        """`real` says which fields are of a picture before they are pooled."""
        pictures, height, width = x_MHWC.shape[:3]
        for down, across in (self.stride, self.pool):
            height, width = -(-height // down), -(-width // across)
        x, sum_ = np.ascontiguousarray(x_MHWC, dtype=np.float32), None if add is None else np.ascontiguousarray(add)
        mask = None if real is None else np.ascontiguousarray(real, dtype=np.float32)
        y = np.empty((pictures, height, width, self.packed.outputs), dtype=np.float32)
        grids = native.Grids(*x.shape[:3], *(None if one is None else one.ctypes.data for one in (x, mask, sum_, y)))
        if self.library.run_convolution(self.convolution, grids, native.threads()):
            raise MemoryError(f"no memory for {pictures} pictures of {x.shape[1]} x {x.shape[2]}")
        return y


class KernelStage:
    """`PlainStage` in a call for each convolution."""

    def __init__(self, config: ConvolutionsFrontEnd, number: int, weights: Weights, bits: int) -> None:
        self.stage = stage = config.stages[number]
        inputs = config.stages[number - 1].width if number else config.channels

        def unit(
            name: str, channels: int = stage.width, stride: Pair = (1, 1), pool: Pair = (1, 1)
        ) -> KernelConvolution:
            folded = Folded.of(part_of(weights, name))
            return KernelConvolution(folded, stage, channels, config.activation, bits, stride=stride, pool=pool)

        self.first = unit("first", inputs, stage.stride, stage.pool)
        self.more = [unit(f"more.{i}") for i in range(stage.more)]
        self.residual = [[unit(f"residual.{i}.{part}") for part in ("one", "two")] for i in range(stage.residual)]
        self.looks = None
        if number + 1 in config.attention:
            self.looks = KernelGridAttention(part_of(weights, "attention"), bits)

    def __call__(self, x: Floats, real: Real) -> tuple[Floats, Real]:
        real = every(real, self.stage.stride)
        x = self.first(x, real)
        real = every(real, self.stage.pool)
        for unit in self.more:
            x = unit(x, real)
        for one, two in self.residual:
            x = two(one(x, real), real, add=x)
        return (x if self.looks is None else self.looks(x, real)), real


class KernelGridAttention:
    """x + gain · softmax(q·k / √d) v over all fields (Zhang et al. 2018, 3). Watchers hear the plain one."""

    def __init__(self, weights: Weights, bits: int) -> None:
        parts = ("query", "key", "value")
        self.parts = [Packed.of(weights[f"{part}.weight"], weights.get(f"{part}.bias"), bits) for part in parts]
        self.gain = weights["gain"]

    def __call__(self, x_MHWC: Floats, real: Real) -> Floats:
        q, k, v = (part(x_MHWC.reshape(len(x_MHWC), -1, x_MHWC.shape[-1])) for part in self.parts)
        scores = q @ k.swapaxes(-1, -2) * np.float32(q.shape[-1] ** -0.5)
        if real is not None:
            scores = np.where(real.reshape(len(real), 1, -1) > 0, scores, LOWEST)
        seen = (softmax(scores) @ v).reshape(x_MHWC.shape)
        changed: Floats = x_MHWC + self.gain * (seen if real is None else seen * real)
        return changed


class KernelConvolutions(PlainConvolutions):
    """All stages on the kernels."""

    def __init__(
        self, config: ConvolutionsFrontEnd, weights: Weights, bits: int, name: str = "encoder", memory: str = SOURCE
    ) -> None:
        self.bits = bits
        super().__init__(config, weights, name, memory)
        self.project = _packed(weights, "embed.project", bits) if "embed.project.weight" in weights else None

    def _stage(self, number: int, weights: Weights, name: str, memory: str) -> Stage:
        return KernelStage(self.config, number, weights, self.bits)

    def _projected(self, x_MSD: Floats) -> Floats:
        assert self.project is not None
        return self.project(x_MSD)


class KernelPatches(PlainPatches):
    """The projection of patches on the kernels."""

    def __init__(self, config: PatchesFrontEnd, weights: Weights, bits: int) -> None:
        super().__init__(config, weights)
        self.project = _packed(weights, "embed.patches", bits)

    def _vectors(self, patches_MSP: Floats) -> Floats:
        return self.project(patches_MSP)


class KernelGrid:
    """`PlainGrid` on the kernels."""

    def __init__(self, config: GridConfig, weights: Weights, bits: int, memory: str = SOURCE) -> None:
        self.pictures = KernelConvolutions(config.front, weights, bits, named("encoder", memory), memory)

    def __call__(
        self, source_MS: Source, mask_MS: Booleans | None = None, segments_MS: Ids | None = None
    ) -> ArrayMemory:
        x, mask_MS, grid = self.pictures(source_MS, mask_MS)
        return ArrayMemory(x, mask_MS, grid=grid)


class KernelSound(PlainSound):
    """Frames of a sound on the kernels."""

    def __init__(self, config: SoundFrontEnd, weights: Weights, bits: int) -> None:
        self.bits = bits
        super().__init__(config, weights)
        self.project = _packed(weights, "embed.project", bits)

    def _stage(self, number: int, weights: Weights) -> Stage:
        assert self.config.grid is not None
        return KernelStage(self.config.grid, number, weights, self.bits)

    def _projected(self, x_MSI: Floats) -> Floats:
        return self.project(x_MSI)


def kernel_pictures(
    front: FrontEnd, weights: Weights, bits: int
) -> KernelPatches | KernelConvolutions | KernelSound | None:
    """What reads an encoder's pictures or sounds; None where it reads tokens."""
    match front:
        case PatchesFrontEnd():
            return KernelPatches(front, weights, bits)
        case ConvolutionsFrontEnd():
            return KernelConvolutions(front, weights, bits)
        case SoundFrontEnd():
            return KernelSound(front, weights, bits)
    return None


def _packed(weights: Weights, name: str, bits: int) -> Packed:
    return Packed.of(weights[f"{name}.weight"], weights.get(f"{name}.bias"), bits)
