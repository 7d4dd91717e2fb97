"""The table of commands, and how every one of them ends: exit code 0, 1 (failed) or 2 (wrong use)."""

import errno
import logging
import os
import re
import sys
import traceback
from collections.abc import Sequence

from cyclopts import App, CycloptsError, UnknownCommandError

from saccade import __version__
from saccade.cli.act import act
from saccade.cli.align import align
from saccade.cli.answer import run, translate
from saccade.cli.cache import cache
from saccade.cli.catalog import data, models, show
from saccade.cli.clean import clean
from saccade.cli.compare import compare
from saccade.cli.complete import complete, score
from saccade.cli.completion import completion
from saccade.cli.describe import answer, caption
from saccade.cli.doctor import doctor
from saccade.cli.evaluate import evaluate
from saccade.cli.explain import explain
from saccade.cli.heads import heads
from saccade.cli.importing import import_
from saccade.cli.look import look
from saccade.cli.output import STREAM
from saccade.cli.plan import plan
from saccade.cli.prompt import prompt
from saccade.cli.read import read
from saccade.cli.see import see
from saccade.cli.spelling import correct, pronounce
from saccade.cli.train import resume, train
from saccade.cli.transcribe import transcribe
from saccade.cli.transfer import transfer
from saccade.cli.understand import classify, fill, tag
from saccade.cli.view import view
from saccade.cli.walk import walk
from saccade.errors import UserError, did_you_mean

HELP = """Train, run and look inside attention models, on the machine you have.

For example:

    saccade translate "this cat is very large"
    saccade translate "this cat is very large" --look attention.png
    saccade complete "Once upon a time"
    saccade train translation my.en my.es --out my-model
    saccade models

Every command has `--help` with examples and `--debug`, which prints the traceback of an error. Most have
`--format json`. Results go to stdout, progress to stderr.
"""

app = App(
    name="saccade", help=HELP, help_format="markdown", version=f"saccade {__version__}", version_flags=["--version"]
)
for command in (
    translate,
    complete,
    score,
    prompt,
    correct,
    pronounce,
    fill,
    classify,
    tag,
    see,
    read,
    caption,
    answer,
    transcribe,
    walk,
    act,
    run,
    look,
    view,
    explain,
    heads,
    align,
    train,
    resume,
    clean,
    evaluate,
    compare,
    transfer,
    plan,
    import_,
    models,
    show,
    data,
    doctor,
    cache,
    completion,
):
    app.command(command)


TRAINING = ("torch", "sacrebleu", "sklearn", "matplotlib", "jiwer")
"""What only the extra `train` brings."""


def main(arguments: Sequence[str] | None = None) -> None:
    """The entry point of the `saccade` command."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in words
    words = [word for word in words if word != "--debug"]
    code = 0
    if {"--quiet", "-q"} & set(words):
        # Each command has its own --quiet; this is for notices from below the commands.
        logging.getLogger("saccade").setLevel(logging.ERROR)
    try:
        code = app(_with_streams(words), exit_on_error=False, print_error=False, result_action="return_value") or 0
        sys.stdout.flush()
    except UnknownCommandError:
        known = [name for name in app if not name.startswith("-")]
        code = _complain(f"no command {words[0]!r}{did_you_mean(words[0], known)}; saccade --help lists them all", 2)
    except CycloptsError as error:
        code = _complain(f"{_one_line(str(error))}; see saccade {words[0] if words else ''} --help", 2)
    except UserError as error:
        if debug:
            traceback.print_exc()
        code = _complain(str(error), error.exit_code)
    except KeyboardInterrupt:
        code = _complain("stopped", 130)
    except BrokenPipeError:
        # The reader of the output has closed the pipe, as `head` does.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 1
    except ModuleNotFoundError as error:
        if debug:
            traceback.print_exc()
        code = _complain(_missing(error, words[0]), 1)
    except Exception as error:
        if debug:
            traceback.print_exc()
        what = _out_of_memory(error) or (_told(error) if isinstance(error, OSError) else repr(error))
        code = _complain(f"{_one_line(what)}; --debug shows where", 1)
    sys.exit(code)


def _with_streams(words: list[str]) -> list[str]:
    """`-` is standard input or output. `--look` may stand alone: it then means the terminal, which is written `-`."""
    words = [word for number, word in enumerate(words) if word != "-" or words[number - 1 : number] != ["--look"]]
    result = []
    for number, word in enumerate(words):
        following = words[number + 1] if number + 1 < len(words) else ""
        alone = word == "--look" and not re.search(r"^\S*\.\w{2,5}$", following)
        result.append("--look=-" if alone else STREAM if word == "-" else word)
    return result


def _missing(error: ModuleNotFoundError, command: str) -> str:
    """What to install for a command that a small install does not bring."""
    name = (error.name or "").partition(".")[0]
    if name not in TRAINING:
        return f"{error!r}; --debug shows where"
    return (
        f"saccade {command} needs {name}, which is not installed: pip install 'saccade[train]', in a clone '.[train]'"
    )


def _out_of_memory(error: Exception) -> str:
    """What to say where memory did not suffice, for Python, NumPy, the system or PyTorch; empty for any other error."""
    system = isinstance(error, OSError) and error.errno == errno.ENOMEM
    torch = isinstance(error, RuntimeError) and re.search(r"can't allocate memory|out of memory", str(error))
    if not (isinstance(error, MemoryError) or system or torch):
        return ""
    asked = re.search(r"tried to allocate ([\d.]+ \w+)|allocate ([\d.]+ \w+) for an array", str(error))
    wanted = f" ({asked[1] or asked[2]} were asked for at once)" if asked else ""
    return (
        f"not enough memory{wanted}: try fewer or shorter inputs, a smaller model, in training a smaller batch_tokens"
    )


def _told(error: OSError) -> str:
    """What the system says, without Python's numbers."""
    return f"{error.filename}: {error.strerror}" if error.filename else error.strerror or repr(error)


def _complain(message: str, code: int) -> int:
    print(f"saccade: {message.replace(STREAM, '-')}", file=sys.stderr)
    return code


def _one_line(text: str) -> str:
    return " ".join(text.split()).rstrip(".")
