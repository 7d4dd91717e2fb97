"""The tensors of a checkpoint written by several processes, each its own part, and read by any number of them.

`torch.distributed.checkpoint` in its safetensors form: its default form has a pickle, which could run code.
"""

import logging
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import torch
from torch import Tensor
from torch.distributed.checkpoint.state_dict_loader import load
from torch.distributed.checkpoint.state_dict_saver import save

from saccade.errors import UserError
from saccade.train.ranks import here

try:
    from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageReader, HuggingFaceStorageWriter
except ImportError:  # the oldest versions that train in one process
    raise UserError(
        f"PyTorch {torch.__version__} writes no safetensors from several processes: pip install --upgrade torch"
    ) from None


def write_parts(folder: Path, tensors: Mapping[str, Tensor]) -> None:
    """Each process writes its parts into a folder that all of them see; equal tensors are written once."""
    writer = HuggingFaceStorageWriter(str(folder), save_distributed=True)
    with _quiet():
        save(dict(tensors), storage_writer=writer)


def read_parts(folder: Path, into: Mapping[str, Tensor]) -> None:
    """Fill tensors, which may be divided otherwise than those that were written."""
    with _quiet():
        load(dict(into), storage_reader=HuggingFaceStorageReader(str(folder)), no_dist=here().count == 1)


def read_whole(folder: Path) -> dict[str, Tensor]:
    """All tensors, in this process alone."""
    empty = {name: torch.empty(size, dtype=kind) for name, (size, kind) in shapes(folder).items()}
    with _quiet():
        load(empty, storage_reader=HuggingFaceStorageReader(str(folder)), no_dist=True)
    return empty


def shapes(folder: Path) -> dict[str, tuple[torch.Size, torch.dtype]]:
    """Shape and type of every tensor."""
    found = HuggingFaceStorageReader(str(folder)).read_metadata().state_dict_metadata
    return {name: (entry.size, entry.properties.dtype) for name, entry in found.items()}  # type: ignore[union-attr]


@contextmanager
def _quiet() -> Iterator[None]:
    """PyTorch logs what it does, and warns that there is one process only."""
    logger = logging.getLogger("torch.distributed.checkpoint")
    before, level = logger.disabled, logger.level
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        logger.setLevel(logging.ERROR)
        try:
            yield
        finally:
            logger.disabled = before
            logger.setLevel(level)
