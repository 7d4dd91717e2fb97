"""The command that programs a language model by examples, and measures how many of them it needs."""

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from saccade.cli.answer import Options
from saccade.cli.curve import COUNTS, PICTURES, load_language_model, measure, measure_families
from saccade.cli.names import ModelName
from saccade.cli.output import answers_to, tell
from saccade.cli.progress import progress_bar
from saccade.cli.reading import Lines, checked, on_one_line, standard_input
from saccade.errors import UserError, WrongUse
from saccade.pipelines.table import TASKS

if TYPE_CHECKING:
    from saccade.data.text import Pair
    from saccade.pipelines.program import Answered, Program
    from saccade.pipelines.template import PromptTemplate

ROW = TASKS["language"]
MOST_TOKENS = 10_000
QUERIES_AT_ONCE = 256


def prompt(
    template: Annotated[str, Parameter(show_default=False)] = "",
    /,
    *,
    examples: Path | None = None,
    input: Annotated[list[str], Parameter(negative="", consume_multiple=True, show_default=False)] = [],  # noqa: B006
    k: Annotated[list[int], Parameter(negative="", consume_multiple=True, show_default=False)] = [],  # noqa: B006
    test: Path | None = None,
    families: Annotated[bool, Parameter(negative="")] = False,
    output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
    quiet: Annotated[bool, Parameter(name=["--quiet", "-q"], negative="")] = False,
    model: ModelName = "prompts",
    show: Annotated[bool, Parameter(negative="")] = False,
    temperature: float = 0.0,
    seed: int = 0,
    max_tokens: int | None = None,
    data: Path | None = None,
    exact: Annotated[bool, Parameter(negative="")] = False,
    int8: Annotated[bool, Parameter(negative="")] = False,
    format: Literal["text", "json"] = "text",
) -> int:
    """Program a language model by examples: the prompt is the examples and a query, the output is the answer.

    Each --input is a query; without --input, each line of standard input. --test measures the accuracy for several
    numbers of examples.

    For example:

        saccade prompt --examples pairs.tsv --input "one query" "another"
        saccade prompt poor-english --input "I eated the purple berries."
        saccade prompt template.toml --examples pairs.tsv --k 4 --show --input query
        saccade prompt --examples pairs.tsv --test held-out.tsv -o curve.png
        saccade prompt --families --data ~/data -o curve.png

    Parameters
    ----------
    template:
        A file TEMPLATE.toml with any of instruction, input, output, between, after, stop, examples; or the name of a
        template that comes with Saccade: poor-english. By default "Input: …", "Output: …", a line each.
    examples:
        A TSV file; each line has an input, a tab and an output.
    input:
        Queries.
    k:
        Number of examples to show. --test and --families take several. Default there: 0 1 2 4 8.
    test:
        A TSV of queries and right answers: print the accuracy for each k. Each query has its own random examples,
        drawn by the seed, never the query itself.
    families:
        Measure the model on held-out questions of the families of tasks that the recipe `prompts` trains.
    output:
        FILE for the answers; FILE.png or FILE.svg for the curve of --test or --families.
    quiet:
        No progress bar and no notices; errors are still printed.
    model:
        Name of a bundled language model, or a model folder.
    show:
        Print the prompt instead of an answer. Needs no model.
    temperature:
        0 takes the most likely answer; above 0, answers are sampled.
    seed:
        Random seed of the examples and the answers.
    max_tokens:
        Largest number of tokens of an answer. Default: a little more than the query or the outputs of the examples.
    data:
        For --families: the folder of the word lists. Default: $SACCADE_DATA, then ./data.
    exact:
        Compute in fp32 instead of the fastest near-lossless format (see saccade doctor).
    int8:
        Use 8-bit weights: faster on large models; some words may differ.
    format:
        json: one JSON object per line.
    """
    how = Options(exact=exact, int8=int8).how
    _check_numbers(k, temperature, seed, max_tokens)
    _check_use(families=families, test=test, asked=input, output=output, k=k, show=show)
    if families:
        if template or examples:
            raise WrongUse("--families brings its own templates and examples: leave out TEMPLATE and --examples")
        return measure_families(*load_language_model(model, how), k or COUNTS, data, output, format)

    from saccade.data.text import read_pairs
    from saccade.pipelines.template import PromptTemplate, read_template

    chosen = read_template(template) if template else PromptTemplate()
    pairs: Sequence[Pair] = read_pairs([examples]) if examples else chosen.examples
    if not pairs and not chosen.instruction:
        raise WrongUse("nothing says what is to be done: give --examples PAIRS.tsv, or a template with an instruction")

    def program() -> "Program":
        from saccade.pipelines.program import Program

        completer, _ = load_language_model(model, how)
        return Program(completer, chosen, temperature=temperature or None, seed=seed, longest=max_tokens)

    if test:
        tests = read_pairs([test])
        counts = _counts(k, pairs, tests)
        return measure(program(), pairs, tests, counts, output, format)
    if k and k[0] > len(pairs):
        raise WrongUse(f"--k {k[0]}, but there are {len(pairs)} examples")
    shown = pairs[: k[0]] if k else pairs
    queries = list(checked(input, ROW.source.longest))
    with answers_to(output):
        if show:
            return _show(chosen, shown, queries, format, quiet=quiet)
        return _answer(program(), shown, queries, format, quiet=quiet)


# Checks, before anything is loaded


def _check_numbers(k: list[int], temperature: float, seed: int, max_tokens: int | None) -> None:
    if any(count < 0 for count in k):
        raise WrongUse(f"--k is a number of examples, not {min(k)}")
    if not 0 <= temperature <= 1000:
        raise WrongUse(f"--temperature must be between 0 and 1000, not {temperature}")
    if not 0 <= seed < 2**40:
        raise WrongUse(f"--seed must be between 0 and {2**40 - 1}, not {seed}")
    if max_tokens is not None and not 1 <= max_tokens <= MOST_TOKENS:
        raise WrongUse(f"--max-tokens must be between 1 and {MOST_TOKENS:,}, not {max_tokens}")


def _check_use(
    *, families: bool, test: Path | None, asked: list[str], output: Path | None, k: list[int], show: bool
) -> None:
    measured = families or test is not None
    if families + (test is not None) + bool(asked) > 1:
        raise WrongUse("--input, --test and --families exclude each other")
    if show and measured:
        raise WrongUse("--show prints the prompts of queries: leave out --test and --families")
    if output is not None and output.suffix.lower() in PICTURES and not measured:
        raise WrongUse(f"-o {output} is for a curve: add --test PAIRS.tsv or --families")
    if len(k) > 1 and not measured:
        raise WrongUse(f"several --k ({' '.join(map(str, k))}) are for --test and --families; give one")
    if output is not None and measured and output.suffix.lower() not in PICTURES:
        raise WrongUse(f"{output}: pictures are {' or '.join(PICTURES)}")
    if output is not None and measured and not output.parent.is_dir():
        raise UserError(f"{output}: there is no folder {output.parent}")


def _counts(k: list[int], pairs: "Sequence[Pair]", tests: "Sequence[Pair]") -> list[int]:
    """The numbers of examples to measure: those asked for, or the usual ones as far as there are examples."""
    from saccade.pipelines.template import most_examples

    most = most_examples(pairs, tests)
    if k:
        if max(k) > most:
            raise WrongUse(f"--k {max(k)}, but there are {most} examples beside the query; give more or a smaller --k")
        return sorted(set(k))
    counts = [count for count in COUNTS if count <= most]
    if len(counts) < len(COUNTS):
        said = f"{most} examples beside the query: k goes to {counts[-1]}, not to {COUNTS[-1]}"
        print(f"saccade: {said}", file=sys.stderr)
    return counts


# Answers


def _queries(given: list[str], *, quiet: bool) -> Iterator[list[str | None]]:
    """The arguments, or the lines of standard input as they come; None for one that cannot be used."""
    if given:
        yield [*given]
        return
    if sys.stdin.isatty():
        tell("reading standard input, one query a line; Ctrl-D ends it", quiet=quiet)
    lines = Lines(standard_input(), ROW.source.longest)
    while taken := lines.take(QUERIES_AT_ONCE):
        yield [line.text for line in taken]


def _show(template: "PromptTemplate", examples: "Sequence[Pair]", given: list[str], format: str, *, quiet: bool) -> int:
    failed, first = False, True
    for queries in _queries(given, quiet=quiet):
        for query in queries:
            if query is None:
                failed = True
                continue
            text = template.prompt(examples, query)
            if format == "json":
                print(json.dumps({"input": query, "prompt": text, "examples": len(examples)}, ensure_ascii=False))
            else:
                print(text if first else f"\n{text}")
            first = False
    return 1 if failed else 0


def _answer(program: "Program", examples: "Sequence[Pair]", given: list[str], format: str, *, quiet: bool) -> int:
    """Print an answer a line, in order; 1 if any query could not be answered."""
    failed, number = False, 0
    with progress_bar("answering", quiet=quiet or sys.stdout.isatty()) as bar:
        for queries in _queries(given, quiet=quiet):
            # A refused line gives an empty line, so that output line n answers input line n.
            texts = [query or "" for query in queries]

            def report(done: int, _: int, before: int = number) -> None:
                bar(before + done, None)

            answers = program.run(texts, examples, first=number, report=report)
            _tell_left_out(answers, len(examples), program.completer.context, quiet=quiet)
            for place, (query, answer) in enumerate(zip(texts, answers, strict=True), number + 1):
                if isinstance(answer, UserError):
                    print(f"saccade: query {place}: {answer}; its output is empty", file=sys.stderr)
                if answer is None or isinstance(answer, UserError):
                    record: dict[str, object] = {"input": query, "text": ""}
                else:
                    record = answer.record()
                print(json.dumps(record, ensure_ascii=False) if format == "json" else on_one_line(str(record["text"])))
            failed = failed or None in queries or any(isinstance(answer, UserError) for answer in answers)
            number += len(queries)
            sys.stdout.flush()
    return 1 if failed else 0


def _tell_left_out(
    answers: "Sequence[Answered | UserError | None]", examples: int, context: int, *, quiet: bool
) -> None:
    left_out = [answer.page.left_out for answer in answers if answer is not None and not isinstance(answer, UserError)]
    if any(left_out):
        many = "the prompt" if len(left_out) == 1 else f"{sum(map(bool, left_out))} of {len(left_out)} prompts"
        tell(
            f"{many} would not fit the model's context of {context} tokens: the first"
            f" {_up_to(left_out)} of {examples} examples left out",
            quiet=quiet,
        )


def _up_to(counts: list[int]) -> str:
    return str(max(counts)) if min(counts) == max(counts) else f"{max(1, min(counts))} to {max(counts)}"
