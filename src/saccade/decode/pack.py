"""Weights packed once at load for the narrow matrices of running a model, where plain fp32 is slow.

How is a name: `exact` is fp32 as trained. `int16` (C kernels, 12-bit weights) and `fp16` (fbgemm) are near
lossless; `int8` is the smallest and may change a word. All but fbgemm's int8 treat every row alone.
"""

import copy
import warnings
from collections.abc import Callable
from functools import partial
from typing import Literal

import torch
from torch import Tensor, nn

from saccade import native

PANEL = 16
How = Literal["exact", "int16", "fp16", "int8"]
NEAR_LOSSLESS: tuple[How, ...] = ("int16", "fp16", "exact")


class PackedLinear(nn.Module):
    """A linear layer on the C kernels: weights rounded to integers with one scale per output."""

    def __init__(self, linear: nn.Linear, bits: int) -> None:
        super().__init__()
        library = native.needed()
        outputs, inputs = linear.weight.shape
        weights = linear.weight.detach().float().contiguous()
        self.weights = torch.empty(library.packed_bytes(outputs, inputs, bits), dtype=torch.uint8)
        # The kernels finish whole panels of outputs.
        self.scales, self.bias = torch.zeros(outputs + PANEL), torch.zeros(outputs + PANEL)
        if linear.bias is not None:
            self.bias[:outputs] = linear.bias.detach()
        library.pack_weights(weights.data_ptr(), outputs, inputs, bits, self.weights.data_ptr(), self.scales.data_ptr())
        self.outputs, self.library = outputs, library
        self.layer = native.Linear(
            outputs, inputs, bits, self.weights.data_ptr(), self.scales.data_ptr(), self.bias.data_ptr()
        )

    def forward(self, x: Tensor) -> Tensor:
        x = x.contiguous()
        y = x.new_empty(*x.shape[:-1], self.outputs)
        rows = x.numel() // x.shape[-1]
        if self.library.run_linear(self.layer, x.data_ptr(), rows, y.data_ptr(), native.threads()):
            raise MemoryError(f"no memory for {rows} rows")
        return y


class Fp16Linear(nn.Module):
    """A linear layer on fbgemm's fp16 kernel, which is PyTorch's own."""

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        bias = None if linear.bias is None else linear.bias.detach().float()
        self.packed = torch.ops.quantized.linear_prepack_fp16(linear.weight.detach().float(), bias)

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = torch.ops.quantized.linear_dynamic_fp16(x, self.packed)
        return result


class Int8Linear(nn.Module):
    """A linear layer on fbgemm's int8 kernel. All rows share one scale: a row's result depends on its batch."""

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        weight = linear.weight.detach().float()
        bias = None if linear.bias is None else linear.bias.detach().float()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the format is deprecated, the kernel has no successor on CPU
            scales = (weight.abs().amax(dim=1).clamp(min=1e-12) / 127).double()
            zeros = torch.zeros(len(scales), dtype=torch.int64)
            rounded = torch.quantize_per_channel(weight, scales, zeros, axis=0, dtype=torch.qint8)
            self.packed = torch.ops.quantized.linear_prepack(rounded, bias)

    def forward(self, x: Tensor) -> Tensor:
        # Seven-bit activations: with eight, the kernel's 16-bit sums can overflow on processors without VNNI.
        result: Tensor = torch.ops.quantized.linear_dynamic(x, self.packed, reduce_range=True)
        return result


def packer(how: How) -> Callable[[nn.Linear], nn.Module]:
    """What replaces a linear layer."""
    if how == "int16" or (how == "int8" and native.kernels() is not None):
        return partial(PackedLinear, bits=8 if how == "int8" else 16)
    return Int8Linear if how == "int8" else Fp16Linear


def pack_linears(model: nn.Module, how: How) -> nn.Module:
    """A model that shares everything with `model` but its linear layers, which are packed."""
    pack = packer(how)
    packed: dict[int, nn.Module] = {}

    def copied(module: nn.Module) -> nn.Module:
        if id(module) not in packed:
            if isinstance(module, nn.Linear):
                packed[id(module)] = pack(module)
            else:
                twin = copy.copy(module)
                twin._modules = {name: copied(child) if child else None for name, child in module._modules.items()}
                packed[id(module)] = twin
        return packed[id(module)]

    return copied(model)
