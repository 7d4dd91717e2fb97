"""Names of memories: a decoder may look at what several encoders read, each under its own name."""

import re
from collections.abc import Collection

from saccade.sites import SOURCE, TARGET

RESERVED = frozenset({TARGET, "row", "chosen", "distance"})
"""What other matrices are counted by."""


def named(part: str, memory: str) -> str:
    """What an encoder, or a look at its memory, is called: `cross_attention_picture` where the memory is called
    picture, and `cross_attention` where it is `source`, that of a model's only encoder."""
    return part if memory == SOURCE else f"{part}_{memory}"


def check_memories(given: Collection[str], names: Collection[str]) -> None:
    """A ValueError says where a decoder is given other memories than those it looks at."""
    if set(given) != set(names):
        raise ValueError(f"a decoder that looks at {_listed(names)} was given {_listed(given)}")


def check_name(memory: str) -> str:
    """A name that can be part of a tensor's name."""
    if not re.fullmatch("[a-z][a-z0-9_]{0,30}", memory) or memory in RESERVED:
        raise ValueError(f"a memory has a name such as 'picture', in small letters, not {memory!r}")
    return memory


def _listed(names: Collection[str]) -> str:
    return ", ".join(names) or "no memory"
