"""Arrows point one way: a module imports lower ranks or its own folder; folders of one rank do not know each other."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import saccade

PACKAGE = Path(saccade.__file__).parent
# `errors` stands below everything, `config` included.
RANKS = {
    **dict.fromkeys(["errors"], -1),
    **dict.fromkeys(["config", "native"], 0),
    **dict.fromkeys(["nn", "tokens"], 1),
    **dict.fromkeys(["models", "data"], 2),
    **dict.fromkeys(["presets", "folder"], 3),
    **dict.fromkeys(["weights"], 3.5),
    **dict.fromkeys(["plan", "train", "decode", "interop"], 4),
    **dict.fromkeys(["evaluate", "look"], 5),
    **dict.fromkeys(["tasks"], 6),
    **dict.fromkeys(["study", "serve"], 7),
    **dict.fromkeys(["cli"], 8),
}
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


def test_distribution_is_named_in_one_file_only() -> None:
    naming = [name for name, path in modules().items() if "torch.distributed" in path.read_text("utf-8")]
    assert set(naming) <= {"saccade.train.parallel"}


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
        "from saccade.look.record import TextLooks",
        "from saccade.decode.beam import beam",
        "from saccade.brandnew import thing",
    ],
)
def test_a_wrong_arrow_is_found(source: str) -> None:
    assert wrong_arrows(source, "saccade.models.rnn" if "decode" not in source else "saccade.train.loop")


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
