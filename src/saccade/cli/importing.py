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
    """Convert a llama2.c model (version 0), such as stories15M, into a model folder.

    For example:

        saccade import stories15M.bin --tokenizer tokenizer.bin --out stories15M
        saccade import llama2.data --out stories15M
        saccade complete "Once upon a time" --model stories15M

    Parameters
    ----------
    file:
        The llama2.c model; its tokenizer may follow it in the same file.
    out:
        The new model folder.
    tokenizer:
        The model's tokenizer.bin, if it is a separate file.
    name:
        Name for the model card. Default: the name of the folder.
    storage:
        Number format of the stored weights: 4, 2 or 1 byte each.
    """
    from saccade.interop.llama2c_folder import import_llama2c

    name = " ".join((name or out.resolve().name).split())
    llama = import_llama2c(file, tokenizer, out, name=name, storage=storage)
    parameters = sum(weight.size for weight in llama.weights.values())
    print(f"{name}: {parameters:,} parameters, {llama.layers} layers, {llama.width} wide, {llama.vocabulary:,} tokens")
    print(f'the model is in {out}: saccade complete "Once upon a time" --model {out}', file=sys.stderr)
    return 0
