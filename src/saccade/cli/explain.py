"""The command that explains an output: explain."""

import json
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from saccade.cli.names import ModelName
from saccade.cli.output import tell
from saccade.cli.progress import progress_bar
from saccade.cli.start import load_model, starting
from saccade.errors import UserError, WrongUse

if TYPE_CHECKING:
    from saccade.explaining.boxes import BlackBox
    from saccade.explaining.checks import MethodCheck
    from saccade.explaining.explain import Explanation, Watch

PERSON = "person"
"""Stands for a model where the black box is one."""
MethodName = Literal["rise", "attention", "rollout", "gradient", "occlusion"]
CHECKED: tuple[MethodName, ...] = ("rise", "occlusion", "attention", "rollout", "gradient")
CHECK_MASKS = 200
CARRIED = Path("test")
"""The test part that a model carries."""


@Parameter(name="*")
@dataclass(frozen=True)
class ExplainOptions:
    """What to explain, and how."""

    method: MethodName | None = None
    "rise: random masks; occlusion: part by part; attention; rollout; gradient. Default: rise, with --check all."
    masks: int | None = None
    "Random masks of rise. Default: 4000 for pictures, 1000 for texts and sounds, 200 with --check."
    until: float | None = None
    "Stop as soon as no value's standard error is above this."
    seed: int = 0
    "Random seed: the same seed gives the same explanation."
    word: int | None = None
    "Explain one word of the answer, counted from 1. Default: the whole answer."
    target: str | None = None
    "Explain this translation, not the model's own."
    question: str | None = None
    "What to ask about the picture, if the model answers questions; what a person is asked."
    cover: Literal["picture", "question"] = "picture"
    "What to cover, if the model answers questions about pictures."
    output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None
    "Draw the explanation into FILE.png or FILE.svg."
    curves: Path | None = None
    "Draw how the score falls and rises as important parts are covered and shown: FILE.png or FILE.svg."
    check: Path | None = None
    "DATA, inputs to check methods on: a file or folder, or the word test for the test part that the model carries."
    inputs: int = 50
    "Inputs drawn from the data of --check."
    questionnaire: Path | None = None
    "Write a form with the masked inputs into FILE.html: a person answers it in a browser, without a network."
    answers: Path | None = None
    "Read the scores from the answers of such a form, not from the model."
    format: Literal["text", "json"] = "text"
    "json: one JSON object."
    quiet: Annotated[bool, Parameter(name=["--quiet", "-q"], negative="")] = False
    "No progress bar and no notices; errors are still printed."


DEFAULTS = ExplainOptions()


def explain(model: ModelName, input: str | None = None, /, *, options: ExplainOptions = DEFAULTS) -> int:
    """Explain which parts of an input an output comes from.

    RISE asks the model about many copies of the input with random parts covered; it works for every model, and for a
    person. Ctrl-C stops it and prints what is known by then. Words, values and their standard errors are printed; -o
    draws them.

    For example:

        saccade explain en-es "this cat is very large" --word 2
        saccade explain en-es "this cat is very large" --word 2 --method attention
        saccade explain tagger "The cat sat." --word 3 -o why.png --curves curves.png
        saccade explain my-photos cat.jpg -o where.png
        saccade explain tagger --check test
        saccade explain person cat.jpg --question "Is this a cat?" --questionnaire form.html --masks 400
        saccade explain person cat.jpg --answers answers.json -o where.png

    Parameters
    ----------
    model:
        Name of a bundled model, or a model folder; person: somebody who fills in a form.
    input:
        A text or a file. For a person also a picture or a WAV file; what is no file is a text.
    """
    with starting():
        _check_options(model, input, options)
    if options.check is not None:
        return _check(model, options)
    assert input is not None
    if model == PERSON or options.questionnaire is not None or options.answers is not None:
        return _ask_person(model, input, options)
    from saccade.explaining.explain import explained

    subject = _subject(model, input, options)
    with _watching(options, subject) as watch:
        found = explained(subject, options.method or "rise", options.seed, options.masks, watch)
    _show(found, options)
    return 0


def _check_options(model: str, input: str | None, options: ExplainOptions) -> None:
    if options.check is None and input is None:
        raise WrongUse('an input is missing: saccade explain MODEL "a text", or a file; or --check DATA')
    if options.check is not None and (input is not None or model == PERSON):
        raise WrongUse("--check takes its inputs from DATA, and a model: leave the input out")
    if model == PERSON and options.questionnaire is None and options.answers is None:
        raise WrongUse("a person needs a form: --questionnaire form.html writes it, --answers answers.json reads it")
    if options.answers is not None and (options.questionnaire is not None or options.method not in (None, "rise")):
        raise WrongUse("--answers are those of rise, and of one form")
    if options.masks is not None and options.masks < 2:
        raise WrongUse(f"--masks must be at least 2, not {options.masks}")
    if options.inputs < 2:
        raise WrongUse(f"--inputs must be at least 2, not {options.inputs}")
    from saccade.look.picture import check_suffix

    for file in (options.output, options.curves):
        if file is not None:
            check_suffix(file)


def _subject(model: str, input: str, options: ExplainOptions) -> "BlackBox":
    from saccade.explaining.boxes import answer_subject, subject_of
    from saccade.pipelines.translator import Translator

    pipeline = load_model(model, None)
    raw: Any = input
    if pipeline.source.asks:
        if options.question is None:
            raise WrongUse('this model answers questions about pictures: add --question "…"')
        raw = (input, options.question)
    if options.target is None:
        asked = options.cover == "question"
        return subject_of(pipeline, raw, word=options.word, question=asked, request=_request(pipeline))
    if not isinstance(pipeline, Translator):
        raise WrongUse("--target: only a translation can be given")
    return answer_subject(pipeline, raw, pipeline.given(input, options.target), word=options.word)


def _request(pipeline: Any) -> Any:
    """A language model goes on for a few words only: each is explained by all words before it."""
    from saccade.explaining.inputs import CONTINUATION
    from saccade.pipelines.completer import Completer
    from saccade.pipelines.pipeline import Request

    return Request(max_tokens=CONTINUATION) if isinstance(pipeline, Completer) else Request()


@contextmanager
def _watching(options: ExplainOptions, subject: "BlackBox") -> "Iterator[Watch]":
    """A progress bar; Ctrl-C and --until stop what it is for."""
    from saccade.explaining.covers import PictureCover
    from saccade.explaining.explain import MASKS
    from saccade.explaining.rise import Estimate

    stopped: list[int] = []
    kind = "picture" if isinstance(subject.cover, PictureCover) else "other"
    total = MASKS[kind] if options.masks is None else options.masks
    before = signal.signal(signal.SIGINT, lambda number, _: stopped.append(number))
    try:
        with progress_bar("masks", quiet=options.quiet) as bar:

            def watch(estimate: Estimate) -> bool:
                bar(estimate.count, total)
                enough = options.until is not None and float(estimate.errors_P.max()) <= options.until
                return bool(stopped) or enough

            yield watch
    finally:
        signal.signal(signal.SIGINT, before)


def _show(found: "Explanation", options: ExplainOptions) -> None:
    from saccade.axes import Grid

    if options.format == "json":
        print(json.dumps(found.record() | _areas(found, options), ensure_ascii=False))
    else:
        print(f"explained: {found.text}")
        print(f"score of the whole input: {found.score:.4f}")
        if isinstance(found.axis, Grid):
            place, value = found.top(1)[0]
            print(f"most important pixel: row,column {place}, {value:.4f}")
        else:
            errors = [None] * len(found.values_P) if found.errors_P is None else found.errors_P.tolist()
            for label, value, error in zip(found.labels, found.values_P.tolist(), errors, strict=True):
                print(f"{value:8.4f}{'' if error is None else f' ± {error:.4f}'}  {label}")
        for name, area in _areas(found, options).items():
            print(f"{name}: {area:.4f}")
    if options.output is not None:
        tell(f"drew {found.picture(options.output)}", quiet=options.quiet)
    sys.stdout.flush()


def _areas(found: "Explanation", options: ExplainOptions) -> dict[str, float]:
    """Measured only where curves are asked for: they cost some more answers."""
    if options.curves is None:
        return {}
    from saccade.explaining.drawing import draw_curves

    one = found.curves()
    draw_curves({found.method: one}, options.curves)
    tell(f"drew {options.curves}", quiet=options.quiet)
    measures = ("deletion", "insertion", "sufficiency", "comprehensiveness")
    return {name: round(getattr(one, name), 6) for name in measures}


def _ask_person(model: str, input: str, options: ExplainOptions) -> int:
    from saccade.explaining.explain import Explanation
    from saccade.explaining.person import person_subject
    from saccade.explaining.questionnaire import read_answers, write_form

    subject = person_subject(input, options.question) if model == PERSON else _subject(model, input, options)
    if options.questionnaire is not None:
        count = 400 if options.masks is None else options.masks
        write_form(subject.cover, options.questionnaire, masks=count, seed=options.seed, question=subject.text)
        tell(f"wrote {options.questionnaire}: {count} questions; read its answers with --answers", quiet=options.quiet)
        return 0
    assert options.answers is not None
    if options.curves is not None:
        raise WrongUse("--curves: a person would have to answer a second form")
    estimate = read_answers(subject.cover, options.answers)
    mean = float(estimate.scores[1] / estimate.count)
    values, errors = estimate.values_P, estimate.errors_P
    axis, count = subject.cover.axis, estimate.count
    _show(Explanation("rise", subject.source, subject.text, axis, values, errors, mean, count, subject), options)
    return 0


def _check(model: str, options: ExplainOptions) -> int:
    from importlib.util import find_spec

    from saccade.explaining.checks import check
    from saccade.explaining.inputs import answered, carried_part, examples

    pipeline = load_model(model, None)
    assert options.check is not None
    path = carried_part(pipeline) if options.check == CARRIED and not CARRIED.exists() else options.check
    if not path.exists():
        raise UserError(f"{path}: no such file or folder")
    methods = CHECKED if options.method is None else (options.method,)
    if options.method is None and find_spec("torch") is None:
        methods = tuple(one for one in methods if one != "gradient")
        tell("without PyTorch: gradient is left out", quiet=options.quiet)
    some = examples(pipeline, [path], options.inputs, options.seed)
    table: list[MethodCheck] = []
    with progress_bar("checking", quiet=options.quiet) as bar:
        pairs = [(one.raw, answer) for one in some for answer in _answer(pipeline, one, answered)]
        raws, answers = [raw for raw, _ in pairs], [answer for _, answer in pairs]
        masks = CHECK_MASKS if options.masks is None else options.masks
        for rows in check(pipeline, raws, answers, methods, masks=masks, seed=options.seed):
            table = rows
            bar(len(rows[0].values_I), len(raws))
    if not table:
        raise UserError(f"{path}: no input has three parts or more that could be covered")
    _print_table(table, options)
    return 0


def _answer(pipeline: Any, one: Any, answered: Any) -> list[Any]:
    """The answer to one input; none where it has none, or was read in several parts."""
    try:
        found: list[Any] = answered(pipeline, [one])
    except UserError:
        return []
    return found


def _print_table(table: "list[MethodCheck]", options: ExplainOptions) -> None:
    if options.format == "json":
        for row in table:
            print(json.dumps(row.record()))
        return
    print(f"{len(table[0].values_I)} inputs; gain: how much better than random removals, with its 95 % interval")
    print(f"{'method':<11}{'measure':<19}{'value':>8}{'random':>8}{'gain':>8}   interval")
    for row in table:
        one = row.record()
        interval = f"{one['low']:+.3f} to {one['high']:+.3f}"
        print(
            f"{row.method:<11}{row.measure:<19}{one['value']:>8.3f}{one['random']:>8.3f}{one['gain']:>+8.3f}   "
            f"{interval}  {row.verdict}"
        )
