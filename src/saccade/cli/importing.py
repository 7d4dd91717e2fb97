"""The command that makes a model folder of another program's model: import."""

import sys
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter


def import_(
    file: Path,
    /,
    *,
    out: Annotated[Path, Parameter(name=["--out", "-o"])],
    tokenizer: Path | None = None,
    name: str | None = None,
    storage: Literal["float32", "float16", "int8"] = "float16",
) -> int:
    """Make a model folder of a llama2.c model (version 0), such as stories15M.

    For example:

        saccade import stories15M.bin --tokenizer tokenizer.bin --out stories15M
        saccade import llama2.data --out stories15M
        saccade complete "Once upon a time" --model stories15M

    Parameters
    ----------
    file:
        The llama2.c model; its tokenizer may follow it in the same file.
    out:
        The model folder to make.
    tokenizer:
        The model's tokenizer.bin, where it is a file of its own.
    name:
        The model's name on its card; by default the folder's.
    storage:
        How the weights are stored: exactly, in half the room, or in a quarter.
    """
    from saccade.interop.llama2c_folder import import_llama2c

    name = " ".join((name or out.resolve().name).split())
    llama = import_llama2c(file, tokenizer, out, name=name, storage=storage)
    parameters = sum(weight.size for weight in llama.weights.values())
    print(f"{name}: {parameters:,} parameters, {llama.layers} layers, {llama.width} wide, {llama.vocabulary:,} tokens")
    print(f'the model is in {out}: saccade complete "Once upon a time" --model {out}', file=sys.stderr)
    return 0
