"""The language of SCAN (Lake and Baroni 2018, figure 6): which commands there are, and what each means."""

import re

from saccade.errors import UserError

VERBS = {"walk": "I_WALK", "look": "I_LOOK", "run": "I_RUN", "jump": "I_JUMP"}
TURNS = {"left": "I_TURN_LEFT", "right": "I_TURN_RIGHT"}
TIMES = {"twice": 2, "thrice": 3}
WORDS = (*VERBS, "turn", *TURNS, "opposite", "around", *TIMES, "and", "after")
EXAMPLES = "'jump twice', 'walk around left thrice', 'run opposite right after look left twice'"
_VERB, _SIDE = "|".join(VERBS), "|".join(TURNS)
_PART = rf"(?:(?:{_VERB})|(?:{_VERB}|turn)(?: (?:opposite|around))? (?:{_SIDE}))(?: (?:{'|'.join(TIMES)}))?"
COMMAND = re.compile(rf"{_PART}(?: (?:and|after) {_PART})?")


def check_command(command: str) -> None:
    """A command that is none is an error which says how one is made; its words stand between single spaces."""
    if not COMMAND.fullmatch(command):
        raise UserError(
            f"{command[:60]!r} is no command of this language, though its words are: a verb "
            f"({', '.join((*VERBS, 'turn'))}), if wanted 'opposite' or 'around', a side (left, right; turn needs one), "
            f"'twice' or 'thrice'; two such parts at most, joined by 'and' or 'after': {EXAMPLES}"
        )


def meaning(command: str) -> list[str]:
    """The actions of a command, by the rules that made the data.

    >>> meaning("jump twice after walk left")
    ['I_TURN_LEFT', 'I_WALK', 'I_JUMP', 'I_JUMP']
    """
    check_command(command)
    first, joined, second = re.fullmatch(rf"({_PART})(?: (and|after) ({_PART}))?", command).groups()  # type: ignore[union-attr]
    if joined is None:
        return _part(first)
    return _part(first) + _part(second) if joined == "and" else _part(second) + _part(first)


def _part(part: str) -> list[str]:
    verb, *rest = part.split()
    act = [VERBS[verb]] if verb in VERBS else []
    turn = [TURNS[word] for word in rest if word in TURNS]
    if "around" in rest:
        done = 4 * [*turn, *act]
    elif "opposite" in rest:
        done = [*turn, *turn, *act]
    else:
        done = [*turn, *act]
    return next((TIMES[word] for word in rest if word in TIMES), 1) * done
