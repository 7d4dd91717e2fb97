"""Names -> model folders and loaded models."""

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

from saccade.errors import UserError, WrongUse, did_you_mean
from saccade.folder import ModelFolder, read_folder
from saccade.pipelines.pipeline import Home
from saccade.pipelines.table import TASKS, TaskRow
from saccade.runtime.contract import How

if TYPE_CHECKING:
    from saccade.pipelines.completer import Completer
    from saccade.pipelines.corrector import Corrector
    from saccade.pipelines.filler import Filler
    from saccade.pipelines.pronouncer import Pronouncer
    from saccade.pipelines.tagger import Tagger
    from saccade.pipelines.translator import Translator
    from saccade.pipelines.walker import Walker

ZOO = Path(__file__).parent.parent / "zoo"


def row_named(name: str) -> TaskRow:
    """What the table says of the task of that name; the registry is closed."""
    if name not in TASKS:
        raise UserError(f"unknown task {name!r}; this version knows {', '.join(TASKS)}")
    return TASKS[name]


def bundled_models() -> list[Path]:
    """The folders of the models that come with Saccade."""
    return sorted(path.parent for path in ZOO.glob("*/config.json"))


def model_path(model: str | Path) -> Path:
    """A bundled model's name or a model folder's path -> the folder."""
    if not isinstance(model, str | Path):
        raise WrongUse(f"a model is a name or a folder, not {model!r}")
    names = [path.name for path in bundled_models()]
    if str(model) in names:
        return ZOO / str(model)
    if Path(model).exists():
        return Path(model)
    raise WrongUse(
        f"no model {str(model)!r}{did_you_mean(str(model), names)}; "
        f"give a model folder or a bundled model: {', '.join(names)}"
    )


@overload
def load(model: Literal["en-es", "en-es-rnn"], how: How | None = None) -> "Translator": ...
@overload
def load(model: Literal["prompts", "shakespeare", "stories"], how: How | None = None) -> "Completer": ...
@overload
def load(model: Literal["speller"], how: How | None = None) -> "Corrector": ...
@overload
def load(model: Literal["pronouncer"], how: How | None = None) -> "Pronouncer": ...
@overload
def load(model: Literal["walker"], how: How | None = None) -> "Walker": ...
@overload
def load(model: Literal["bert-mini"], how: How | None = None) -> "Filler": ...
@overload
def load(model: Literal["tagger"], how: How | None = None) -> "Tagger": ...
@overload
def load(model: str | Path, how: How | None = None) -> Any: ...
def load(model: str | Path, how: How | None = None) -> Any:
    """A bundled model by name, or a model folder by path, ready to be called.

    The task of the model says what it is: a `Translator`, a `Completer`, a `Tagger` …

    `how` it computes: "exact", "int16" or "int8". By default, on the C kernels where these know all its parts: int8 if
    that lost nothing on its validation part, else int16; elsewhere exact float32. `saccade doctor MODEL` shows it.

    >>> translator = saccade.load("en-es")
    >>> translator("this cat is very large").text
    'este gato es muy grande'
    """
    return open_folder(read_folder(model_path(model)), how)


def open_folder(folder: ModelFolder, how: How | None = None) -> Any:
    """The pipeline of a folder that was read; by default in the arithmetic that its validation chose."""
    chosen = "int8" if how is None and folder.table("arithmetic").get("default") == "int8" else how
    task = folder.config.task
    module, _, attribute = row_named(task).pipeline.partition(":")
    pipeline = getattr(import_module(module), attribute).open(folder, chosen)
    pipeline.home = Home(folder.path.resolve(), folder.config.name or folder.path.name, task, how, load)
    return pipeline
