"""Arrows point one way: a module imports lower ranks or its own folder; folders of one rank do not know each other."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import saccade

PACKAGE = Path(saccade.__file__).parent
# `errors` and `cache` stand below everything, `config` included.
RANKS = {
    **dict.fromkeys(["errors", "cache"], -1),
    **dict.fromkeys(["config", "files", "native", "sites"], 0),
    **dict.fromkeys(["arch", "tokens", "tensors"], 1),
    **dict.fromkeys(["axes"], 1.25),
    **dict.fromkeys(["sources", "worlds"], 1.5),
    **dict.fromkeys(["folder", "presets", "nn"], 2),
    **dict.fromkeys(["runtime", "carried"], 2.5),
    **dict.fromkeys(["models", "data", "decode", "plan"], 3),
    **dict.fromkeys(["weights"], 3.5),
    **dict.fromkeys(["train", "look", "interop"], 4),
    **dict.fromkeys(["evaluate"], 5),
    **dict.fromkeys(["pipelines"], 6),
    **dict.fromkeys(["explaining"], 6.5),
    **dict.fromkeys(["tasks"], 7),
    **dict.fromkeys(["study", "serve", "view"], 8),
    **dict.fromkeys(["cli"], 9),
    **dict.fromkeys(["__main__"], 10),
}
ANSWERING = {
    "errors",
    "cache",
    "config",
    "files",
    "native",
    "arch",
    "tokens",
    "axes",
    "sources",
    "worlds",
    "tensors",
    "sites",
    "folder",
    "carried",
    "presets",
    "plan",
    "runtime",
    "decode",
    "look",
}
ANSWERING |= {"pipelines", "explaining", "serve", "view", "cli"}
"""The half that answers: it runs where PyTorch is not installed."""
# The root resolves its public names lazily; from below, only what it holds itself may be taken.
ROOT_NAMES = {"__version__"}


def imported(source: str, module: str) -> Iterator[str]:
    """Every module a source names, wherever the import stands: in a function or under TYPE_CHECKING too."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = module.split(".")[: -node.level] if node.level else []
            name = ".".join([*above, *([node.module] if node.module else [])])
            yield from (f"{name}.{alias.name}" if name == "saccade" else name for alias in node.names)
        elif isinstance(node, ast.Call) and "import_module" in ast.unparse(node.func):
            yield from (
                word.value for word in node.args if isinstance(word, ast.Constant) and isinstance(word.value, str)
            )


def wrong_arrows(source: str, module: str) -> list[str]:
    """The imports of a module that go up or sideways; `module` is its dotted name."""
    home = module.split(".")[1]
    wrong = []
    for name in imported(source, module):
        top, _, rest = name.partition(".")
        folder = rest.partition(".")[0]
        if top != "saccade" or folder == home or rest in ROOT_NAMES:
            continue
        if folder not in RANKS or RANKS[folder] >= RANKS[home]:
            wrong.append(f"{module} imports {name}")
    return wrong


def modules() -> dict[str, Path]:
    """The dotted name of every module but the root, which may import anything lazily."""
    names = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        if parts != ("__init__",):
            names[".".join(["saccade", *parts])] = path
    return names


def test_every_folder_has_a_rank() -> None:
    homes = {name.split(".")[1] for name in modules()}
    assert {"nn", "train", "cli", "config"} <= homes
    assert homes <= RANKS.keys()


def test_no_module_imports_up_or_sideways() -> None:
    found = [wrong for name, path in modules().items() for wrong in wrong_arrows(path.read_text("utf-8"), name)]
    assert found == []


def mark_constants(source: str) -> list[str]:
    """The names of marks or of their ids that a source imports."""
    return [
        alias.name
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ImportFrom) and (node.module or "").endswith("tokens.marks")
        for alias in node.names
        if alias.name in ("SPECIALS", "PAD", "BEGIN", "END")
    ]


def test_marks_are_asked_of_a_vocabulary_and_imported_by_none_outside_tokens() -> None:
    found = {
        name: constants
        for name, path in modules().items()
        if not name.startswith("saccade.tokens.") and (constants := mark_constants(path.read_text("utf-8")))
    }
    assert found == {}


def test_an_imported_mark_is_found() -> None:
    assert mark_constants("def late():\n    from saccade.tokens.marks import END, Marks") == ["END"]
    assert mark_constants("from ..tokens.marks import SPECIALS") == ["SPECIALS"]
    assert mark_constants("from saccade.tokens.marks import Marks") == []


def imported_at_once(source: str, module: str) -> Iterator[str]:
    """Every module that is imported as soon as this one is: not in a function, not under TYPE_CHECKING."""
    kept = [
        node
        for node in ast.parse(source).body
        if isinstance(node, ast.Import | ast.ImportFrom)
        or (isinstance(node, ast.Try | ast.If) and "TYPE_CHECKING" not in ast.unparse(node))
    ]
    yield from imported("\n".join(ast.unparse(node) for node in kept), module)


def reached(start: str, sources: dict[str, str]) -> set[str]:
    """All modules that importing one brings along."""
    found, waiting = set(), [start]
    while waiting:
        name = waiting.pop()
        for other in imported_at_once(sources.get(name, ""), name):
            # `from package import name` may name a module or something in one.
            for candidate in (other, other.rpartition(".")[0]):
                if candidate and candidate not in found:
                    found.add(candidate)
                    waiting.append(candidate)
    return found


def test_the_answering_half_does_not_import_pytorch() -> None:
    sources = {name: path.read_text("utf-8") for name, path in modules().items()}
    heavy = {"torch", "sacrebleu", "sklearn", "matplotlib"}
    for name, source in sources.items():
        if name.split(".")[1] in ANSWERING:
            assert not heavy & {other.partition(".")[0] for other in reached(name, sources)}, name
            inside = {other.partition(".")[0] for other in imported(source, name)}
            assert not heavy & inside, f"{name} imports {heavy & inside} in a function"


def test_a_public_class_has_its_name_to_itself() -> None:
    homes: dict[str, list[str]] = {}
    for name, path in modules().items():
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes.setdefault(node.name, []).append(name)
    assert {name: where for name, where in homes.items() if len(where) > 1} == {}


def test_distribution_is_named_in_train_alone() -> None:
    naming = [name for name, path in modules().items() if "torch.distributed" in path.read_text("utf-8")]
    assert "saccade.train.ranks" in naming
    assert [name for name in naming if not name.startswith("saccade.train.")] == []


@pytest.mark.parametrize(
    "source",
    [
        "from saccade.train.loop import train",
        "import saccade.train.loop",
        "from saccade import train",
        "from saccade import load",
        "from ..train import loop",
        "def late():\n    from saccade.train.loop import train",
        "if TYPE_CHECKING:\n    from saccade.train.loop import train",
        "importlib.import_module('saccade.train.loop')",
        "from saccade.look.record import Looks",
        "from saccade.decode.session import Session",
        "from saccade.brandnew import thing",
    ],
)
def test_a_wrong_arrow_is_found(source: str) -> None:
    assert wrong_arrows(source, "saccade.models.rnn")


def test_right_arrows_are_let_through() -> None:
    source = """
import torch
from saccade import __version__
from saccade.errors import UserError
from saccade.nn.attention import attention
from saccade.models.contract import Memory
from . import contract
"""
    assert wrong_arrows(source, "saccade.models.rnn") == []
