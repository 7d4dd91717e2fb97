"""The models that the page may ask: loaded when they are first asked, and what each of them takes."""

from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from saccade.errors import WrongUse
from saccade.folder import read_config
from saccade.pipelines.load import bundled_models, load, model_path, row_named
from saccade.pipelines.pipeline import Pipeline
from saccade.runtime.contract import How
from saccade.tokens.vocabulary import Vocabulary

Values = dict[str, Any]
ARITHMETICS: dict[str, How] = {"exact": "exact", "int16": "int16", "int8": "int8"}
EXAMPLES: dict[str, list[str]] = {
    "translation": ["this cat is very large", "the girl reads the book she was given", "we are eating bread"],
    "language": ["once upon a time", "the dog was a big", "one day a little girl found"],
    "masked": ["the cat sat on the [MASK]", "[MASK] is the capital of france", "he drank a cup of [MASK]"],
    "tagging": ["The cat sat on the mat.", "They fish for fish.", "Time flies like an arrow."],
    "pronunciation": ["attention", "thought", "colonel"],
    "correction": ["I recieve a lettre evry day", "teh cat is hungrey", "she dose not know"],
    "classification": ["a film to remember", "two hours I will never get back", "well acted, badly told"],
    "walking": ["jump twice", "walk left and run", "turn around right twice"],
}
"""Inputs to begin with, by task."""


@dataclass(frozen=True)
class Offer:
    """A model that may be asked, before it is loaded."""

    name: str
    """A bundled name or a folder, perhaps with its arithmetic behind an @."""
    task: str
    verb: str
    takes: str
    """text, pair, picture, picture question or sound"""
    digest: str
    """Of its weights."""

    @classmethod
    def of(cls, name: str) -> "Offer":
        path, _ = _parted(name)
        config = read_config(model_path(path))
        row = row_named(config.task)
        digest = config.sha256.get("model.safetensors", "")[:12]
        return cls(name, config.task, row.verb, row.source.kind, digest)

    def values(self) -> Values:
        takes = {"text": "text", "pair of texts": "pair"}.get(self.takes, self.takes)
        known = {"name": self.name, "task": self.task, "verb": self.verb, "takes": takes, "digest": self.digest}
        return known | {"examples": EXAMPLES.get(self.task, [])}


@dataclass
class Models:
    """Those that were named, and the bundled ones."""

    named: list[str]
    loaded: dict[str, Pipeline[Any, Any]] = field(default_factory=dict)
    lock: Lock = field(default_factory=Lock)

    def __post_init__(self) -> None:
        bundled = [path.name for path in bundled_models()]
        names = dict.fromkeys([*self.named, *bundled])
        self.offers = {name: Offer.of(name) for name in names}

    def values(self) -> list[Values]:
        return [offer.values() for offer in self.offers.values()]

    def offer(self, name: str) -> Offer:
        """Only what was offered is opened: a page names no folder of this machine."""
        if name not in self.offers:
            base, how = _parted(name)
            if base not in self.offers or how is None:
                raise WrongUse(f"no model {name[:80]!r} here; there are {', '.join(self.offers)}")
            self.offers[name] = Offer.of(name)
        return self.offers[name]

    def open(self, name: str) -> Pipeline[Any, Any]:
        """Exact unless its name says otherwise: what is changed is then compared with the same arithmetic."""
        self.offer(name)
        with self.lock:
            if name not in self.loaded:
                base, how = _parted(name)
                self.loaded[name] = load(base, how or "exact")
            return self.loaded[name]


def vocabulary_of(pipeline: Any) -> Vocabulary | None:
    """What it writes with, if it writes."""
    found: Vocabulary | None = getattr(getattr(pipeline, "translator", pipeline), "vocabulary", None)
    return found


def model_of(pipeline: Any) -> Any:
    """What runs it; its `config` is the record of the model's parts."""
    return getattr(pipeline, "translator", pipeline).model


def _parted(name: str) -> tuple[str, How | None]:
    base, _, how = name.rpartition("@")
    return (base, ARITHMETICS[how]) if base and how in ARITHMETICS else (name, None)
