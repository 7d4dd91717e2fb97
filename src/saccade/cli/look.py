"""The command that draws where a model looks, and what changes when it must not: look."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from saccade.cli.answer import Options
from saccade.cli.asking import answer_all
from saccade.cli.names import ModelName
from saccade.cli.output import tell
from saccade.cli.start import load_model, starting
from saccade.errors import WrongUse

if TYPE_CHECKING:
    from saccade.explaining.interventions import Intervention
    from saccade.look.alignment import Alignment
    from saccade.pipelines.answer import Answer

Several = Annotated[tuple[str, ...], Parameter(negative="")]


@Parameter(name="*")
@dataclass(frozen=True)
class LookOptions:
    """What is drawn, and what is taken away."""

    output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None
    "FILE.png or FILE.svg; FILE.html is a page with all heads and steps. Default: draw in the terminal."
    layer: int | None = None
    "Layer to draw, counted from 1."
    head: int | None = None
    "Head to draw, counted from 1. Default: the mean of all heads."
    every_head: Annotated[bool, Parameter(negative="")] = False
    "Draw every head of every layer, small, side by side; needs -o."
    rollout: Annotated[bool, Parameter(negative="")] = False
    "Draw the attention of the encoder rolled out through all its layers."
    prefix: str = ""
    "The beginning of the answer."
    target: str | None = None
    "Draw how this translation looks at the text, not the model's own."
    question: str | None = None
    "What to ask about the picture, if the model answers questions."
    without_head: Several = ()
    "Switch off a head: 2.3 is head 3 of layer 2 of what is drawn; or encoder:2.3, decoder:2.3, cross:2.3. Repeatable."
    without_layer: Several = ()
    "Switch off all heads of an attention layer, such as 2 or encoder:2. Repeatable."
    without_word: Annotated[tuple[int, ...], Parameter(negative="")] = ()
    "Hide a word of the input, counted from 1. Repeatable."
    without_cell: Several = ()
    "Hide a field of the picture's grid, such as 3,4: row and column, counted from 1. Repeatable."
    format: Literal["text", "json"] = "text"
    "json: both outputs and the log-probability of every piece, as one object."
    quiet: Annotated[bool, Parameter(name=["--quiet", "-q"], negative="")] = False
    "No notices; errors are still printed."

    @property
    def edits(self) -> bool:
        """Whether anything is taken away."""
        return bool(self.without_head or self.without_layer or self.without_word or self.without_cell)

    def cells(self) -> list[tuple[int, int]]:
        """Rows and columns."""
        found = []
        for cell in self.without_cell:
            row, comma, column = cell.partition(",")
            if not (comma and row.strip().isdigit() and column.strip().isdigit()):
                raise WrongUse(f"--without-cell {cell}: a row and a column, such as 3,4")
            found.append((int(row), int(column)))
        return found


DEFAULTS = LookOptions()


def look(model: ModelName, input: str, *, options: LookOptions = DEFAULTS) -> int:
    """Draw the attention weights of a model for one input, also of a translation that is given, also with parts of the
    model or of the input taken away.

    With --without-… the answer is printed twice: as the model is, and without. Then follows what that changes in the
    log-probability of each piece of the first answer.

    For example:

        saccade look en-es "this cat is very large" -o attention.png
        saccade look en-es "this cat is very large" -o attention.html
        saccade look en-es "this cat is very large" --layer 1 --head 3
        saccade look en-es "this cat is very large" --every-head -o heads.png
        saccade look en-es "this cat is very large" --target "este gato es enorme"
        saccade look en-es "this cat is very large" --without-word 2
        saccade look en-es "this cat is very large" --without-head cross:2.3 --without-layer encoder:1

    Parameters
    ----------
    model:
        Name of a bundled model, or a model folder.
    input:
        A text or a file.
    """
    cells = options.cells()
    if options.output is not None and options.output.suffix.lower() == ".html":
        return _write_page(model, input, options)
    if options.every_head and options.output is None:
        raise WrongUse("--every-head draws into a file: add -o FILE.png")
    if options.rollout and (options.every_head or options.layer is not None or options.head is not None):
        raise WrongUse("--rollout is of all layers and heads: leave out --layer, --head and --every-head")
    special = options.edits or options.target is not None or options.every_head or options.rollout
    if not special and options.format == "text":
        plain = Options(
            prefix=options.prefix,
            look=options.output or Path("-"),
            layer=options.layer,
            head=options.head,
            quiet=options.quiet,
        )
        return answer_all((input,), model, plain, None, question=options.question)
    if options.output is not None:
        from saccade.look.picture import check_suffix

        check_suffix(options.output)
    pipeline = load_model(model, None)
    with starting():
        from saccade.pipelines.pipeline import Request

    raw: Any = input
    if pipeline.source.asks:
        if options.question is None:
            raise WrongUse('this model answers questions about pictures: add --question "…"')
        raw = (input, options.question)
    request = Request(prefix=options.prefix)
    before = _answer(pipeline, raw, options, request)
    if options.edits:
        return _without(pipeline, raw, before, options, cells, request)
    _print(pipeline, before, options)
    _draw([before], ["" if options.target is None else "the given translation"], options)
    return 0


def _write_page(model: str, input: str, options: LookOptions) -> int:
    """All layers and heads, as they are."""
    plain = replace(options, output=None, prefix="", question=None, quiet=False)
    if plain != DEFAULTS:
        raise WrongUse(
            f"{options.output} holds all layers and heads, as they are: leave out what says which; `saccade view` "
            "takes things away and shares what comes of it"
        )
    from saccade.cli.view import write_page

    assert options.output is not None
    asked = {"prefix": options.prefix, "question": options.question}
    return write_page(model, input, options.output, **asked, quiet=options.quiet)


def _answer(pipeline: Any, raw: Any, options: LookOptions, request: Any) -> "Answer":
    from saccade.explaining.interventions import exactly
    from saccade.look.watch import watch
    from saccade.pipelines.translator import Translator

    found: Answer
    if options.target is None:
        found = exactly(pipeline, raw, request=request)
        return found
    if not isinstance(pipeline, Translator):
        raise WrongUse("--target: only a translation can be given")
    if options.prefix:
        raise WrongUse("--target is the whole translation: leave out --prefix")
    with watch(pipeline):
        found = pipeline.given(raw, options.target)
    return found


def _without(
    pipeline: Any, raw: Any, before: "Answer", options: LookOptions, cells: list[tuple[int, int]], request: Any
) -> int:
    from saccade.explaining.interventions import intervene
    from saccade.explaining.places import edit_of
    from saccade.look.watch import watch

    edit = edit_of(
        pipeline,
        before,
        heads=options.without_head,
        layers=options.without_layer,
        words=options.without_word,
        cells=cells,
    )
    found = intervene(pipeline, raw, edit, request=request, before=before)
    if options.format == "json":
        print(json.dumps(found.record(), ensure_ascii=False))
    else:
        _print_intervention(found)
    if options.output is not None:
        assert found.after is not None
        with watch(pipeline, edit):
            _ = found.after.looks  # heard while the edit holds
        _draw([before, found.after], ["as it is", "without"], options)
    return 0


def _print_intervention(found: "Intervention") -> None:
    before, after = float(found.before_P.sum()), float(found.after_P.sum())
    assert found.after is not None
    print(f"as it is: {found.before.text}")
    print(f"without:  {found.after.text}")
    print(f"log-probability of the first: {before:.3f}, without {after:.3f} ({found.change:+.3f})")
    widest = max(len(piece) for piece in found.pieces)
    for piece, one, other in zip(found.pieces, found.before_P.tolist(), found.after_P.tolist(), strict=True):
        print(f"  {piece:<{widest}}  {one:8.3f} {other:8.3f}  {other - one:+8.3f}")


def _print(pipeline: Any, answer: "Answer", options: LookOptions) -> None:
    if options.format == "json" or options.target is not None:
        forced = pipeline.forced(answer)
        pieces, values = list(forced.pieces.labels), forced.logprobs_IP[0].tolist()
        if options.format == "json":
            rows = [{"piece": piece, "logprob": round(value, 4)} for piece, value in zip(pieces, values, strict=True)]
            print(json.dumps({"source": answer.source, "text": answer.text, "pieces": rows}, ensure_ascii=False))
            return
        print(f"{answer.text}\tlog-probability {sum(values):.3f}")
        return
    print(answer.text)


def _draw(answers: "Sequence[Answer]", titles: Sequence[str], options: LookOptions) -> None:
    """All in one picture, or in the terminal."""
    if options.every_head:
        from saccade.look.head_grid import draw_heads

        assert options.output is not None
        draw_heads([one.looks.part(0) for one in answers], titles, options.output)
        tell(f"drew {options.output}", quiet=options.quiet)
        return
    drawn = [one for answer, title in zip(answers, titles, strict=True) for one in _alignments(answer, title, options)]
    if options.output is not None:
        from saccade.look.picture import draw

        draw(drawn, options.output, answers[0].image)
        tell(f"drew {options.output}", quiet=options.quiet)
    elif options.format == "text":
        from rich.console import Console

        from saccade.look.terminal import draw_in_terminal

        draw_in_terminal(drawn, Console(highlight=False))


def _alignments(answer: "Answer", title: str, options: LookOptions) -> "list[Alignment]":
    if options.rollout:
        from saccade.look.rollout import rolled_out

        found = [rolled_out(answer.looks.part(number)) for number in range(answer.looks.parts)]
    else:
        found = answer.looks.alignments(options.layer, options.head)
    return [replace(one, title=f"{title}: {one.title}" if title else one.title) for one in found]
