"""The two ways a command may fail because of what it was given; everything else is a defect."""

import difflib
from collections.abc import Iterable


class UserError(Exception):
    """What is wrong with an input, a file or an option, and what to do next, in one line.

    >>> try:
    ...     saccade.load("en-ez")
    ... except saccade.UserError as error:
    ...     print(str(error)[:45])
    no model 'en-ez'; did you mean en-es?; give a
    """

    exit_code = 1
    """How a command ends that fails with it."""

    def __init__(self, message: str) -> None:
        # Names out of files may hold line breaks; an error stays one line all the same.
        super().__init__(" ".join(message.splitlines()))


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """A hint at the nearest of the known names, to be appended to an error; empty where none is near."""
    found = difflib.get_close_matches(name, list(names), n=1)
    return f"; did you mean {found[0]}?" if found else ""


class MissingData(UserError):
    """A data file of a recipe that is not on this machine."""


class WrongUse(UserError):
    """A command, key or value that cannot be meant. Exit code 2."""

    exit_code = 2
