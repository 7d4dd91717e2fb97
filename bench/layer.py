"""One multi-head layer on a long padded text: `python -m bench.layer TOKENS` prints its peak memory as JSON."""

import json
import os
import resource
import sys
import time

import torch

from saccade.nn.masks import Keys
from saccade.nn.multihead import SelfAttention

WIDTH, HEADS = 512, 8
PADDED = 0.1
"""Share of the positions that are padding."""


def main() -> None:
    tokens = int(sys.argv[1])
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", torch.get_num_threads())))
    torch.manual_seed(1)
    layer = SelfAttention(WIDTH, HEADS).eval()
    x_BTD = torch.randn(1, tokens, WIDTH)
    real_BT = (torch.arange(tokens) < tokens * (1 - PADDED))[None]
    began = time.perf_counter()
    with torch.inference_mode():
        y_BTD = layer(x_BTD, Keys(real_BT))
    result = {
        "seconds": time.perf_counter() - began,
        # Of the whole process, Python and torch included; Linux counts it in KiB.
        "bytes": 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
        "finite": bool(y_BTD.isfinite().all()),
        "torch": torch.__version__,
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
