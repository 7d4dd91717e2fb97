"""The C kernels: compiled once on the machine they run on, kept in the user's cache, and done without if that fails."""

import _ctypes
import ctypes
import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from ctypes import POINTER, c_float, c_int, c_int64, c_uint64, c_void_p
from functools import cache
from importlib.resources import files

from saccade.cache import explain
from saccade.native.build import library_file, openmp, processor
from saccade.native.forks import lost_threads, survive_forks

# Sums may be reordered into vectors; infinities must stay infinities, so not all of -ffast-math.
FLAGS = [
    *("-O3", "-march=native", "-std=gnu11", "-fopenmp", "-fPIC"),
    *("-fassociative-math", "-fno-signed-zeros", "-fno-trapping-math", "-fno-math-errno"),
]


FILES = ("threads.c", "linear.c", "maths.c", "attention.c", "choose.c", "stack.c", "convolution.c", "training.c")
"""In the order in which they build on one another."""
ACTIVATIONS = {"relu": 0, "gelu": 1, "gelu-tanh": 2, "silu": 3}
"""As maths.c numbers them."""
MOST_HEAD_WIDTH = 512
"""Of heads that training.c copies."""
MOST_INPUTS = 2**17
"""Of a linear layer: 128 * 127 times as many, what bytes can sum up to in linear.c, is just below 2^31."""


class Linear(ctypes.Structure):
    """See linear.c; so for the others."""

    _fields_ = [
        ("outputs", c_int),
        ("inputs", c_int),
        ("bits", c_int),
        ("weights", c_void_p),
        ("scales", c_void_p),
        ("bias", c_void_p),
    ]


class Norm(ctypes.Structure):
    _fields_ = [("gain", c_void_p), ("shift", c_void_p), ("epsilon", c_float)]


class Layer(ctypes.Structure):
    _fields_ = [
        *((name, Norm) for name in ("around_self", "around_cross", "around_feedforward")),
        *((name, Linear) for name in ("project", "out", "query", "cross_out", "widen", "narrow")),
        ("window", c_int),
    ]


class Stack(ctypes.Structure):
    _fields_ = [
        *((name, c_int) for name in ("layers", "width", "heads", "key_heads", "feedforward")),
        *((name, c_int) for name in ("post", "activation", "gated", "cross")),
        ("layer", POINTER(Layer)),
        ("last", POINTER(Norm)),
        ("head", POINTER(Linear)),
        ("rotary_table", c_void_p),
        ("halves", c_int),
        ("int8_head", POINTER(Linear)),
    ]


class Job(ctypes.Structure):
    _fields_ = [
        ("rows", c_int),
        ("texts", c_int),
        ("x", c_void_p),
        ("starts", c_void_p),
        ("positions", c_void_p),
        ("longest", c_int),
        ("pool", c_void_p),
        ("capacity", c_int64),
        ("places", c_void_p),
        ("lengths", c_void_p),
        ("places_per_text", c_int),
        ("memories", c_void_p),
        ("memory_strides", c_void_p),
        ("sources", c_void_p),
        ("longest_source", c_int),
        ("memory_of", c_void_p),
        ("wanted", c_void_p),
        ("wanted_count", c_int),
        ("logits", c_void_p),
    ]


class PictureConvolution(ctypes.Structure):
    _fields_ = [
        ("linear", POINTER(Linear)),
        ("norm", POINTER(Norm)),
        *((name, c_int) for name in ("channels", "kernel", "down", "across", "pool_down", "pool_across", "activation")),
    ]


class Grids(ctypes.Structure):
    _fields_ = [
        *((name, c_int) for name in ("pictures", "height", "width")),
        *((name, c_void_p) for name in ("x", "real", "add", "y")),
    ]


def kernels() -> ctypes.CDLL | None:
    """The library, or None where it cannot be had: no compiler, no AVX2, nowhere to keep it."""
    found = _load()
    return found if isinstance(found, ctypes.CDLL) else None


def why_not() -> str:
    """Why there is no library; empty if there is one."""
    found = _load()
    return found if isinstance(found, str) else ""


@cache
def _load() -> ctypes.CDLL | str:
    if os.environ.get("SACCADE_NATIVE") == "0":
        return "SACCADE_NATIVE is 0"
    try:
        return _built(afresh=False) or _built(afresh=True) or "the compiled library lacks functions"
    except subprocess.CalledProcessError as error:
        lines = error.stderr.decode(errors="replace").splitlines()
        return next((line for line in lines if "error" in line), "the compiler failed")
    except (OSError, subprocess.SubprocessError) as error:
        return explain(error) if isinstance(error, OSError) else str(error)


def _built(*, afresh: bool) -> ctypes.CDLL | None:
    """The library, or None where it lacks a function; an OSError where it cannot be had or loaded."""
    library = ctypes.CDLL(str(library_file(f"kernels-{identity()}.so", _source(), FLAGS, afresh=afresh)))
    try:
        _declare(library)
        survive_forks(library)
        return library
    except AttributeError:
        # Closed, or the loader would give the same one again when a better one stands in its place.
        _ctypes.dlclose(library._handle)
        return None


def needed() -> ctypes.CDLL:
    """The library, for code that is only reached where there is one."""
    library = kernels()
    if library is None:
        raise RuntimeError("the C kernels are not available")
    return library


def identity() -> str:
    """Which kernels these are: their source, how they are compiled, and for which processor."""
    if os.environ.get("SACCADE_NATIVE") == "0":
        return "none"
    parts = (_source(), " ".join([*FLAGS, *openmp()]).encode(), processor())
    return hashlib.sha256(b"".join(parts)).hexdigest()[:16]


@cache
def _source() -> bytes:
    """One program of several files; the compiler names them where something is wrong."""
    folder = files(__package__)
    return b"".join(f'#line 1 "{name}"\n'.encode() + (folder / name).read_bytes() for name in FILES)


_threads_here: ContextVar[int | None] = ContextVar("threads", default=None)


def threads() -> int:
    """How many threads a call may use: as many as PyTorch, unless said otherwise for this thread of the program.

    Avoids importing PyTorch, which would ask OpenMP too.
    """
    if lost_threads():
        return 1
    if asked := _threads_here.get():
        return asked
    if torch := sys.modules.get("torch"):
        return int(torch.get_num_threads())
    library = kernels()
    return (os.cpu_count() or 1) if library is None else int(library.most_threads())


@contextmanager
def single_threaded() -> Iterator[None]:
    """Several pieces of work side by side, one thread each, need no waiting for each other."""
    token = _threads_here.set(1)
    try:
        yield
    finally:
        _threads_here.reset(token)


def _declare(library: ctypes.CDLL) -> None:
    library.most_threads.argtypes = library.end_threads.argtypes = []
    library.multiplies_bytes.argtypes = []
    library.packed_bytes.argtypes = [c_int, c_int, c_int]
    library.packed_bytes.restype = c_int64
    library.pack_weights.argtypes = [c_void_p, c_int, c_int, c_int, c_void_p, c_void_p]
    library.pack_weights.restype = None
    library.run_linear.argtypes = [POINTER(Linear), c_void_p, c_int, c_void_p, c_int]
    library.run_stack.argtypes = [POINTER(Stack), POINTER(Job), c_int]
    library.run_convolution.argtypes = [POINTER(PictureConvolution), POINTER(Grids), c_int]
    library.choose_best.argtypes = [c_void_p, c_int, c_int, c_int, c_void_p, c_void_p, c_int]
    library.choose_best.restype = None
    library.cross_entropy.argtypes = [
        *(c_void_p, c_int, c_void_p, c_int, c_int, c_float, c_int),
        *(c_void_p, c_void_p, c_int),
    ]
    library.cross_entropy.restype = None
    library.add_dropped.argtypes = [c_void_p, c_void_p, c_void_p, c_int64, c_uint64, c_int, c_float, c_int]
    library.add_dropped.restype = None
    library.copy_heads.argtypes = [
        *(c_void_p, c_void_p, c_int, c_void_p, c_void_p, c_int),
        *(c_int, c_int, c_int, c_int, c_void_p, c_void_p, c_int, c_int, c_int),
    ]
    library.copy_heads.restype = None


__all__ = [
    "MOST_HEAD_WIDTH",
    "MOST_INPUTS",
    "Grids",
    "Job",
    "Layer",
    "Linear",
    "Norm",
    "PictureConvolution",
    "Stack",
    "identity",
    "kernels",
    "needed",
    "single_threaded",
    "threads",
    "why_not",
]
