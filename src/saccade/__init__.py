"""Saccade trains, runs and looks inside attention models, on the machine you have.

    load       a bundled model by name, or a model folder: ready to be called
    train      train a model on your own files or by a recipe, and return it (needs the extra `train`)
    watch      hear every attention of a model inside a `with` block, and perhaps change it
    Edit       what to change: heads that are switched off, positions that are hidden
    explain    which parts of an input an output comes from, of a loaded model or of any function
    Looks      where a model looked while it answered: `answer.looks`, or a file that `looks.save` wrote
    attention  softmax(q k) v in ten plain lines of PyTorch (needs the extra `train`)
    UserError  what is raised where an input, a file or an option is wrong; says what to do in one line

>>> import saccade
>>> translator = saccade.load("en-es")
>>> translator("this cat is very large").text
'este gato es muy grande'

The names are found when they are first used: importing saccade does not import torch.
"""

from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from saccade.errors import UserError
    from saccade.explaining.explain import explain
    from saccade.look.record import Looks
    from saccade.look.watch import watch
    from saccade.nn.attention import attention
    from saccade.pipelines.load import load
    from saccade.sites import Edit
    from saccade.tasks.training import train

__all__ = ["Edit", "Looks", "UserError", "attention", "explain", "load", "train", "watch"]
__version__ = "0.1.0"

_HOMES = {
    "Edit": "saccade.sites",
    "Looks": "saccade.look.record",
    "UserError": "saccade.errors",
    "attention": "saccade.nn.attention",
    "explain": "saccade.explaining.explain",
    "load": "saccade.pipelines.load",
    "watch": "saccade.look.watch",
}


class _Callable(ModuleType):
    """`saccade.train` is a package, `saccade.train.loop` a module of it, and `saccade.train(…)` trains a model."""

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        """Train a model and return it; `help(saccade.tasks.training.train)` tells the options."""
        return _training().train(*arguments, **options)

    @property
    def __signature__(self) -> Any:
        """For notebooks and editors."""
        return import_module("inspect").signature(_training().train)


def _training() -> Any:
    if find_spec("torch") is None:
        user_error = import_module("saccade.errors").UserError
        raise user_error("saccade.train needs torch, which is not installed: pip install 'saccade[train]'")
    return import_module("saccade.tasks.training")


# Python puts a package into the name space of its parent when it is first imported, so that a function of the same
# name would disappear.
import_module("saccade.train").__class__ = _Callable


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'saccade' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    """The public names; without PyTorch, those that do without it, so that `help(saccade)` finds what it asks for."""
    return sorted(name for name in (*__all__, "__version__") if name != "attention" or find_spec("torch"))
