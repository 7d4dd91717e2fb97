"""`python -m bench [NAME…]`: run the named comparisons, or all of them."""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from bench.characters import compare_characters
from bench.file import compare_file
from bench.memory import compare_memory
from bench.process import EngineError
from bench.recurrent import compare_recurrent
from bench.report import Report, write_report
from bench.settings import Settings
from bench.startup import compare_startup
from bench.time_to_bleu import compare_time_to_bleu
from bench.training import compare_training
from bench.translation import compare_translation
from saccade.errors import UserError

COMPARISONS: dict[str, Callable[[Settings], Report]] = {
    "training": compare_training,
    "recurrent": compare_recurrent,
    "characters": compare_characters,
    "translation": compare_translation,
    "file": compare_file,
    "startup": compare_startup,
    "memory": compare_memory,
    "time-to-bleu": compare_time_to_bleu,
}


def main() -> int:
    names, settings = _read_arguments()
    try:
        for name in names:
            write_report(COMPARISONS[name](settings), name, settings.out)
    except (UserError, EngineError) as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("bench: stopped; this comparison was not written", file=sys.stderr)
        return 130
    return 0


def _read_arguments() -> tuple[list[str], Settings]:
    usual = Settings()
    parser = argparse.ArgumentParser(prog="python -m bench", description=sys.modules["bench"].__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"what to compare: {', '.join(COMPARISONS)} (all)")
    parser.add_argument("-o", "--out", type=Path, default=usual.out, help="folder for the table and plot (%(default)s)")
    parser.add_argument("--data", type=Path, help="folder of the data sets ($SACCADE_DATA, then ./data)")
    parser.add_argument("--joeynmt", type=Path, metavar="PYTHON", help="Python of an environment that has JoeyNMT 2.3")
    for name, meaning in Settings.numbers.items():
        default = getattr(usual, name)
        told = meaning if default is None else f"{meaning} (%(default)s)"
        parser.add_argument(f"--{name}", type=_positive, default=default, help=told, metavar="N")
    given = vars(parser.parse_args())
    names = given.pop("names") or list(COMPARISONS)
    unknown = [name for name in names if name not in COMPARISONS]
    if unknown:
        parser.error(f"there is no comparison {unknown[0]!r}; there are: {', '.join(COMPARISONS)}")
    return names, Settings(**given)


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is not 1 or more")
    return number


if __name__ == "__main__":
    sys.exit(main())
