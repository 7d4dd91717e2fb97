"""Saccade trains, runs and looks inside attention models, on the machine you have.

The names are found when they are first used: importing saccade does not import torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from saccade.look.watch import watch
    from saccade.nn.attention import attention
    from saccade.pipelines.load import load
    from saccade.sites import Edit

__all__ = ["Edit", "attention", "load", "watch"]
__version__ = "0.1.0"

_HOMES = {
    "Edit": "saccade.sites",
    "attention": "saccade.nn.attention",
    "load": "saccade.pipelines.load",
    "watch": "saccade.look.watch",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'saccade' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
