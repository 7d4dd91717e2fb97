"""Matrix products in bfloat16 where the processor has instructions for it; everything else stays in float32.

Such a product takes less than half the time, and its inputs and result are rounded to eight bits. Weights, the sums of
their gradients, the optimiser's state, the fused attention and the sums between layers are never rounded.
"""

from typing import Literal

import torch

Precision = Literal["auto", "float32"]
"""auto: products in bfloat16 where that is faster."""


def has_fast_bfloat16() -> bool:
    """Whether this processor has bfloat16 instructions. Emulation is up to a thousand times slower."""
    able = torch.cpu.get_capabilities()
    return bool(able.get("avx512_bf16") or able.get("amx_bf16"))


def kind_of_products(precision: Precision, device: str = "cpu") -> torch.dtype:
    fast = {"cpu": has_fast_bfloat16, "cuda": torch.cuda.is_bf16_supported}.get(device)
    return torch.bfloat16 if precision == "auto" and fast is not None and fast() else torch.float32
