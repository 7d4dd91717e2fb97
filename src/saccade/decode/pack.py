"""A model's linear layers packed once at load for the narrow matrices of running it, where plain fp32 is slow."""

import copy
import warnings
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn

from saccade import native
from saccade.decode.packed import How, Packed


class PackedLinear(nn.Module):
    """A linear layer on the C kernels."""

    def __init__(self, linear: nn.Linear, bits: int) -> None:
        super().__init__()
        bias = None if linear.bias is None else linear.bias.detach().numpy()
        self.packed = Packed(linear.weight.detach().numpy(), bias, bits)

    def forward(self, x: Tensor) -> Tensor:
        return torch.from_numpy(self.packed(x.numpy()))


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
