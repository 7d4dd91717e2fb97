"""The command that says what this machine can do, and how a model runs on it."""

import json
import sys
from typing import Any, Literal

from saccade.cli.names import ModelName

INSTRUCTIONS = ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_bf16")


def doctor(model: ModelName | None = None, /, *, format: Literal["text", "json"] = "text") -> int:
    """Show what Saccade found on this machine; with a model, also what runs it and why.

    Commands use the C kernels for models whose parts these know: in int8 if that loses nothing on the model's
    validation part, else in int16, which is near lossless. Other models run in plain float32. --exact always asks for
    plain float32, --int8 for the smallest weights.

    For example:

        saccade doctor
        saccade doctor en-es
        saccade doctor --format json

    Parameters
    ----------
    model:
        A bundled model's name, or a model folder.
    format:
        json: one JSON object.
    """
    record = _machine() | ({} if model is None else {"model": _model(model)})
    if format == "json":
        print(json.dumps(record, ensure_ascii=False))
        return 0
    print(f"saccade {record['saccade']}, Python {record['python']}, NumPy {record['numpy']}")
    print(f"processor   {', '.join(record['instructions']) or 'no AVX2'}; {record['threads']} threads")
    print(f"C kernels   {record['kernels']}")
    print(f"cache       {record['cache']}")
    print(f"PyTorch     {record['torch'] or 'not installed: only training needs it'}")
    inputs, outputs = record["layer"]
    print(f"\nmicroseconds of a linear layer {inputs} -> {outputs}, by number of rows")
    print("          " + "".join(f"{rows:>9,}" for rows in record["rows"]))
    for how, times in record["microseconds"].items():
        print(f"  {how:8}" + "".join(f"{time:>9.0f}" for time in times))
    for name, value in record.get("model", {}).items():
        print(f"\nmodel       {value}" if name == "name" else f"{name:<11} {value}")
    sys.stdout.flush()
    return 0


def _machine() -> dict[str, Any]:
    import os
    import platform
    from importlib.metadata import PackageNotFoundError, version
    from pathlib import Path

    import numpy

    from saccade import __version__, cache, native
    from saccade.runtime.measure import INPUTS, OUTPUTS, ROWS, time_packings

    try:
        flags = (
            Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").split("flags", 1)[-1].splitlines()[0]
        )
    except OSError:
        flags = ""
    try:
        torch = version("torch")
    except PackageNotFoundError:
        torch = None
    return {
        "saccade": __version__,
        "python": platform.python_version(),
        "numpy": numpy.__version__,
        "torch": torch,
        "instructions": [name for name in INSTRUCTIONS if name in flags.split()],
        "threads": native.threads() if native.kernels() else os.cpu_count(),
        "kernels": native.why_not() or "compiled for this machine",
        "cache": cache.why_not() or str(cache.folder()),
        "layer": [INPUTS, OUTPUTS],
        "rows": ROWS,
        "microseconds": time_packings(),
    }


def _validated(arithmetic: dict[str, Any]) -> str:
    """What int8 loses on the validation part, as the folder says."""
    if not arithmetic:
        return "in one arithmetic only, so int8 is not the default"
    figures = ", ".join(f"{how} {arithmetic.get(how)}" for how in ("int16", "int8"))
    return f"{arithmetic.get('figure')}: {figures}"


def _model(name: str) -> dict[str, str]:
    """What runs a model, for whom, and why."""
    from saccade.folder import read_folder
    from saccade.pipelines.load import model_path, open_folder

    folder = read_folder(model_path(name))
    pipeline = open_folder(folder)
    choice, mixture = pipeline.choice, getattr(pipeline, "mixture", None)
    kind = folder.config.model.get("kind", "encoder-decoder")
    watched = "PyTorch" if choice.engine == "PyTorch" else "plain float32"
    return {
        "name": f"{name}: {folder.config.task}, {kind}, format {folder.config.format}",
        "answers": f"{choice.engine}, {choice.how}: {choice.why}",
        "validated": _validated(folder.table("arithmetic")),
        **({} if mixture is None else {"probability": str(mixture.settings)}),
        "exact": watched,
        "looking": watched,
    }
