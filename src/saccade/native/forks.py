"""A process that is forked keeps one thread: the pool of OpenMP is ended before, or the child goes on without one."""

import ctypes
import os
from dataclasses import dataclass


@dataclass
class _Threads:
    """Of this process."""

    ended: bool = True
    """Whether the pool was, before the last fork."""
    lost: bool = False
    """Whether a fork left this process with a pool whose threads it does not have."""


# Of the whole process, as threads are: a fork takes no argument.
_threads = _Threads()


def survive_forks(library: ctypes.CDLL) -> None:
    """Let the children of this process use the kernels, which would wait for ever for threads that were not copied.

    The forking thread ends its pool and makes another when it needs one, which takes microseconds. So does the child.
    """

    def before() -> None:
        _threads.ended = bool(library.end_threads())

    def in_child() -> None:
        _threads.lost |= not _threads.ended

    os.register_at_fork(before=before, after_in_child=in_child)


def lost_threads() -> bool:
    """Whether this process was forked from one that could not end its pool: it must do with one thread."""
    return _threads.lost
