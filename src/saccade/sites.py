"""Where attention happens in a model, what a watcher hears there, and what it may change: one description for PyTorch
and for the plain runtime."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeVar

from saccade.errors import WrongUse

Kind = Literal["encoder", "decoder", "cross"]
"""Who looks at what: what is read at itself, what is written at its own past, what is written at what was read."""
KINDS: tuple[Kind, ...] = ("encoder", "decoder", "cross")
SOURCE, TARGET = "source", "target"
COMMAND, WORLD = "command", "world"
"""The memories of what acts: what it was told, and what it sees at this step."""


@dataclass(frozen=True)
class Site:
    """What an attention layer says of itself."""

    kind: Kind
    memory: str = SOURCE
    """The name of what it looks at: the memory that an encoder makes, the memory that a decoder looks at, or `target`,
    the decoder's own past. A decoder with several memories has a site for each."""

    @classmethod
    def encoder(cls, memory: str = SOURCE) -> "Site":
        """Self-attention of the encoder that reads this memory."""
        return cls("encoder", memory)

    @classmethod
    def decoder(cls) -> "Site":
        """Self-attention of what is written."""
        return cls("decoder", TARGET)

    @classmethod
    def cross(cls, memory: str = SOURCE) -> "Site":
        """What is written looks at this memory."""
        return cls("cross", memory)


A = TypeVar("A")
"""NumPy's arrays or PyTorch's tensors."""


@dataclass(frozen=True)
class Look(Generic[A]):
    """What one attention layer did in one call."""

    name: str
    """The layer's name in the model, such as `decoder.blocks.2.cross_attention`."""
    site: Site
    weights_BNTS: A
    """Every head, nothing averaged."""

    @property
    def kind(self) -> Kind:
        return self.site.kind

    @property
    def memory(self) -> str:
        return self.site.memory


@dataclass(frozen=True)
class Edit:
    """What `saccade.watch` changes while a model runs: heads and attention layers that are switched off, positions that
    nobody may look at.

    >>> saccade.Edit(without_heads=[("decoder.blocks.1.cross_attention", 3)], without_source=[2])  # doctest: +ELLIPSIS
    Edit(without_heads=[('decoder.blocks.1.cross_attention', 3)], without_source=[2], ...)
    """

    without_heads: Collection[tuple[str, int]] = ()
    """Layer names and heads, counted from 0, whose output is zero."""
    without_source: Collection[int] = ()
    """Source positions that nobody may look at."""
    without_target: Collection[int] = ()
    """Target positions that nobody may look at."""
    without_memory: Mapping[str, Collection[int]] = field(default_factory=dict)
    """Positions that nobody may look at, by the name of their memory, where a decoder has several."""
    without_layers: Collection[str] = ()
    """Names of attention layers whose whole output is zero: all their heads are off."""

    def hidden(self, site: Site, keys: int) -> list[int]:
        """The positions, of so many, that are hidden from looks at this site."""
        places = set(self.without_memory.get(site.memory, ()))
        places.update({SOURCE: self.without_source, TARGET: self.without_target}.get(site.memory, ()))
        return sorted(place for place in places if 0 <= place < keys)

    def heads_off(self, name: str, heads: int) -> list[int]:
        """The heads of a layer, of so many, that are switched off."""
        if name in self.without_layers:
            return list(range(heads))
        return sorted({head for site, head in self.without_heads if site == name and 0 <= head < heads})


L = TypeVar("L", bound=Look[Any])


@dataclass
class Heard(ABC, Generic[L, A]):
    """All looks heard, in the order they happened."""

    edit: Edit = Edit()
    looks: list[L] = field(default_factory=list)

    def __iter__(self) -> Iterator[L]:
        return iter(self.looks)

    def __len__(self) -> int:
        return len(self.looks)

    @abstractmethod
    def _stack(self, weights: list[A]) -> A:
        """[L, B, N, T, S]; no layers if none looked."""

    def of(self, kind: Kind, memory: str | None = None) -> A:
        """The weights of one kind, layers stacked: [L, B, N, T, S]; no layers if none looked."""
        found = [look for look in self.looks if look.kind == kind and memory in (None, look.memory)]
        if len(memories := {look.memory for look in found}) > 1:
            raise WrongUse(f"looks at {' and '.join(sorted(memories))} were heard: name one of them")
        shapes = {tuple(look.weights_BNTS.shape) for look in found}
        if len(shapes) > 1:
            raise WrongUse(
                f"{len(found)} looks of {len(shapes)} sizes were heard, such as those of a text as it grew: "
                "take them one by one"
            )
        return self._stack([look.weights_BNTS for look in found])

    @property
    def cross(self) -> A:
        return self.of("cross")

    @property
    def encoder(self) -> A:
        return self.of("encoder")

    @property
    def decoder(self) -> A:
        return self.of("decoder")

    def __repr__(self) -> str:
        sizes = (
            f"{kind} at {memory}: {count} looks"
            for (kind, memory), count in _counts([(look.kind, look.memory) for look in self.looks]).items()
        )
        return f"<{', '.join(sizes) or 'nothing heard'}>"


def _counts(sites: list[tuple[Kind, str]]) -> dict[tuple[Kind, str], int]:
    return {site: sites.count(site) for site in dict.fromkeys(sites)}
