"""The command that says what this machine can do."""

import json
import sys
from typing import Literal


def doctor(*, format: Literal["text", "json"] = "text") -> int:
    """Show what Saccade found on this machine, and which arithmetic it therefore uses.

    Measures a linear layer packed in each of the ways there are, and remembers the outcome: the fastest
    near-lossless one is what commands use unless told --exact or --int8.

    For example:

        saccade doctor
        saccade doctor --format json

    Parameters
    ----------
    format:
        json: one object, for machines.
    """
    import platform

    import torch

    from saccade import __version__, native
    from saccade.decode.measure import measure, memory_path
    from saccade.decode.timing import INPUTS, OUTPUTS, ROWS
    from saccade.train.precision import has_fast_bfloat16

    measurement = measure()
    training = "bfloat16" if has_fast_bfloat16() else "float32"
    kernels = native.why_not() or "compiled for this machine"
    if format == "json":
        record = {
            "saccade": __version__,
            "python": platform.python_version(),
            "torch": torch.__version__,
            "instructions": torch.backends.cpu.get_cpu_capability(),
            "threads": torch.get_num_threads(),
            "kernels": kernels,
            "training": training,
            "layer": [INPUTS, OUTPUTS],
            "rows": ROWS,
            "microseconds": measurement.microseconds,
            "packing": measurement.fastest,
        }
        print(json.dumps(record))
        return 0
    print(f"saccade {__version__}, Python {platform.python_version()}, torch {torch.__version__}")
    print(f"processor   {torch.backends.cpu.get_cpu_capability()}, {torch.get_num_threads()} threads")
    print(f"C kernels   {kernels}")
    print(f"training    matrix products in {training}")
    print(f"\nmicroseconds of a linear layer {INPUTS} -> {OUTPUTS} on one thread, by packing and number of rows")
    print("          " + "".join(f"{rows:>9,}" for rows in ROWS))
    for how, times in measurement.microseconds.items():
        mark = "  <- used by default" if how == measurement.fastest else ""
        print(f"  {how:8}" + "".join(f"{time:>9.0f}" for time in times) + mark)
    print(f"\nremembered in {memory_path()}; measured again by this command")
    sys.stdout.flush()
    return 0
