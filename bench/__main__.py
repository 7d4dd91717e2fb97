"""`python -m bench [NAME…]`: run the named comparisons, or all of them."""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from bench.bert import compare_bert
from bench.characters import compare_characters
from bench.classes import compare_classes
from bench.elsewhere import compare_elsewhere
from bench.file import compare_file
from bench.gpt import compare_gpt
from bench.memory import compare_memory
from bench.plan import compare_plan
from bench.process import EngineError
from bench.pronunciation import compare_pronunciation
from bench.reading import compare_reading
from bench.recurrent import compare_recurrent
from bench.report import Report, write_report
from bench.settings import Settings
from bench.small_classes import compare_small_classes
from bench.speech import compare_speech
from bench.spelling import compare_spelling
from bench.startup import compare_startup
from bench.time_to_bleu import compare_time_to_bleu
from bench.training import compare_training
from bench.translation import compare_translation
from saccade.errors import UserError

COMPARISONS: dict[str, Callable[..., Report]] = {
    "training": compare_training,
    "recurrent": compare_recurrent,
    "characters": compare_characters,
    "translation": compare_translation,
    "gpt": compare_gpt,
    "bert": compare_bert,
    "file": compare_file,
    "elsewhere": compare_elsewhere,
    "startup": compare_startup,
    "memory": compare_memory,
    "time-to-bleu": compare_time_to_bleu,
    "spelling": compare_spelling,
    "pronunciation": compare_pronunciation,
    "reading": compare_reading,
    "speech": compare_speech,
    "classes": compare_classes,
    "small-classes": compare_small_classes,
    "plan": compare_plan,
}
MODELS = {
    "elsewhere": "model",
    "spelling": "model",
    "pronunciation": "model",
    "reading": "model",
    "speech": "model",
    "classes": "init",
    "small-classes": "model",
}
"""Comparisons of a trained model, and the option that names another than their usual one."""


def main() -> int:
    names, settings, models = _read_arguments()
    try:
        for name in names:
            write_report(COMPARISONS[name](settings, **models.get(name, {})), name, settings.out)
    except (UserError, EngineError) as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("bench: stopped; this comparison was not written", file=sys.stderr)
        return 130
    return 0


def _read_arguments() -> tuple[list[str], Settings, dict[str, dict[str, str]]]:
    """What to compare, how, and for some of it with which model."""
    usual = Settings()
    parser = argparse.ArgumentParser(prog="python -m bench", description=sys.modules["bench"].__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"what to compare: {', '.join(COMPARISONS)} (all)")
    parser.add_argument("-o", "--out", type=Path, default=usual.out, help="folder for the table and plot (%(default)s)")
    parser.add_argument("--data", type=Path, help="folder of the data sets ($SACCADE_DATA, then ./data)")
    parser.add_argument("--joeynmt", type=Path, metavar="PYTHON", help="Python of an environment that has JoeyNMT 2.3")
    parser.add_argument(
        "--model",
        help="the model of elsewhere (en-es), spelling (speller), pronunciation (pronouncer) or reading (reader); "
        "small-classes: what to start from",
    )
    parser.add_argument("--init", metavar="MODEL", help="classes: the model that was trained before (bert-mini)")
    parser.add_argument(
        "--tests", action="store_true", help="elsewhere, small-classes: open the test parts too, which is done once"
    )
    for name, meaning in Settings.numbers.items():
        default = getattr(usual, name)
        told = meaning if default is None else f"{meaning} (%(default)s)"
        parser.add_argument(f"--{name}", type=_positive, default=default, help=told, metavar="N")
    given = vars(parser.parse_args())
    names = given.pop("names") or list(COMPARISONS)
    unknown = [name for name in names if name not in COMPARISONS]
    if unknown:
        parser.error(f"there is no comparison {unknown[0]!r}; there are: {', '.join(COMPARISONS)}")
    chosen = {option: given.pop(option) for option in dict.fromkeys(MODELS.values())}
    if chosen["model"] and sum(MODELS.get(name) == "model" for name in names) > 1:
        parser.error("--model is for one comparison: elsewhere, spelling, pronunciation, reading or small-classes")
    models = {name: {option: chosen[option]} for name, option in MODELS.items() if chosen[option]}
    return names, Settings(**given), models


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is not 1 or more")
    return number


if __name__ == "__main__":
    sys.exit(main())
