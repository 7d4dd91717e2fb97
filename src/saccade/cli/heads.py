"""The command that removes every head in turn: heads."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from saccade.cli.names import ModelName
from saccade.cli.output import tell
from saccade.cli.progress import progress_bar
from saccade.cli.start import load_model
from saccade.errors import UserError, WrongUse

if TYPE_CHECKING:
    from saccade.explaining.heads import HeadStudy
    from saccade.explaining.inputs import Example


def heads(
    model: ModelName,
    data: Path | None = None,
    *,
    inputs: int = 50,
    seed: int = 0,
    bleu: Annotated[bool, Parameter(negative="")] = False,
    output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
    format: Literal["text", "json"] = "text",
    quiet: Annotated[bool, Parameter(name=["--quiet", "-q"], negative="")] = False,
) -> int:
    """Switch off every head of a model in turn: what it costs, and what it does.

    The cost is what the log-probability of the output loses, per piece of it; where the data has outputs (the second
    column of a table of translations), these are taken, else what the model says itself. What a head does is measured
    on where it looks: the previous, the same or the next place, the same word elsewhere, punctuation, the beginning and
    end marks, the diagonal.

    For example:

        saccade heads en-es
        saccade heads en-es valid.tsv --inputs 100 -o heads.png
        saccade heads tagger --format json
        saccade heads en-es --bleu

    Parameters
    ----------
    model:
        Name of a bundled model, or a model folder.
    data:
        Inputs: texts, a line each; a table; CoNLL-U; a folder of pictures. Default: the test part in the model.
    inputs:
        Inputs drawn from the data.
    seed:
        Random seed for drawing them.
    bleu:
        Of a translator: switch off more and more heads, the cheapest first, and translate; needs the extra `train`.
    output:
        Draw layers and heads into FILE.png or FILE.svg.
    format:
        json: one JSON object per head.
    quiet:
        No progress bar and no notices; errors are still printed.
    """
    if inputs < 2:
        raise WrongUse(f"--inputs must be at least 2, not {inputs}")
    if output is not None:
        from saccade.look.picture import check_suffix

        check_suffix(output)
    if data is not None and not data.exists():
        raise UserError(f"{data}: no such file or folder")
    pipeline = load_model(model, None)
    from saccade.explaining.heads import study_heads
    from saccade.explaining.inputs import answered, carried_part, examples
    from saccade.pipelines.translator import Translator

    some = examples(pipeline, [carried_part(pipeline) if data is None else data], inputs, seed)
    if bleu and not (isinstance(pipeline, Translator) and any(one.target for one in some)):
        raise WrongUse("--bleu: only for a translator, on a table with translations")
    answers = answered(pipeline, some, given=True)
    with progress_bar("inputs", quiet=quiet) as bar:
        studies: list[HeadStudy] = []
        for rows in study_heads(pipeline, answers):
            studies = rows
            bar(len(rows[0].costs), len(answers))
    _print(studies, format)
    if bleu:
        _prune(pipeline, some, studies, format, quiet=quiet)
    if output is not None:
        from saccade.explaining.head_table import draw_studies

        tell(f"drew {draw_studies(studies, output)}", quiet=quiet)
    return 0


def _print(studies: "list[HeadStudy]", format: str) -> None:
    if format == "json":
        for one in studies:
            print(json.dumps(one.record(), ensure_ascii=False))
        return
    print(f"{len(studies[0].costs)} inputs; cost: nats that a piece of the output loses without the head")
    print(f"{'head':<14}{'cost':>9}{'± error':>10}  {'entropy':>7}  what it looks at")
    for one in studies:
        told = ", ".join(
            f"{role} {one.share(role)[0]:.0%}" for role in sorted(one.shares, key=lambda r: -one.share(r)[0])[:2]
        )
        print(f"{one.label:<14}{one.cost:>9.4f}{one.error:>10.4f}  {one.entropy:>7.2f}  {one.role:<12} ({told})")


def _prune(pipeline: Any, some: "list[Example]", studies: "list[HeadStudy]", format: str, *, quiet: bool) -> None:
    """BLEU with more and more heads off, until half of it is gone."""
    from saccade.evaluate.metrics import bleu
    from saccade.explaining.heads import removed_in_order
    from saccade.look.watch import watch
    from saccade.pipelines.pipeline import Request
    from saccade.sites import Edit

    pairs = [(str(one.raw), one.target) for one in some if one.target]
    references = [[target] for _, target in pairs if target]

    def score(edit: Edit) -> float:
        with watch(pipeline, edit):
            found = pipeline.answer([source for source, _ in pairs], Request(beam=1))
        return float(bleu([getattr(one, "text", "") for one in found], references).value)

    steps = removed_in_order(studies)
    whole = score(Edit())
    rows = [("", whole)]
    with progress_bar("translating", quiet=quiet) as bar:
        for number, (label, edit) in enumerate(steps, 1):
            bar(number, len(steps))
            rows.append((label, score(edit)))
            if rows[-1][1] < whole / 2:
                break
    lost = next((number for number, (_, value) in enumerate(rows) if value < whole - 1), len(rows))
    if format == "json":
        for number, (label, value) in enumerate(rows):
            print(json.dumps({"heads off": number, "last": label, "bleu": round(value, 2)}))
        return
    print(f"BLEU of {len(pairs)} translations (greedy) as heads are switched off, the cheapest first")
    for number, (label, value) in enumerate(rows):
        print(f"{number:>4}  {value:6.2f}  {label}")
    print(f"{lost - 1} of {len(steps)} heads can go before a point of BLEU is lost")
