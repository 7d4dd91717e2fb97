"""Commands that ask a language model: complete, score."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from saccade.cli.answer import Options
from saccade.cli.asking import draw_looks
from saccade.cli.curve import load_language_model
from saccade.cli.names import ModelName
from saccade.cli.output import STREAM, answers_to, tell
from saccade.cli.reading import checked
from saccade.errors import UserError, WrongUse
from saccade.pipelines.table import TASKS

if TYPE_CHECKING:
    from saccade.pipelines.completer import Completer
    from saccade.pipelines.pipeline import Request

ROW = TASKS["language"]
MOST_TOKENS = 100_000
MOST_COMPLETIONS = 1000


def complete(
    *prompts: str,
    model: ModelName = ROW.model,
    max_tokens: int = 200,
    temperature: float | None = None,
    top_k: int | None = None,
    top_p: float | None = None,
    repetition: float = 1.0,
    stop: Annotated[list[str], Parameter(negative="")] = [],  # noqa: B006
    seed: int = 0,
    n: int = 1,
    stream: bool = True,
    echo: bool = True,
    format: Literal["text", "json"] = "text",
    look: Annotated[Path | None, Parameter(show_default=False)] = None,
    layer: int | None = None,
    head: int | None = None,
    output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
    quiet: Annotated[bool, Parameter(name=["--quiet", "-q"], negative="")] = False,
    exact: Annotated[bool, Parameter(negative="")] = False,
    int8: Annotated[bool, Parameter(negative="")] = False,
) -> int:
    """Continue a text: each argument, or all of standard input as one prompt.

    Texts are sampled: at temperature 0.8 and with seed 0, unless others are given. The same prompt gives the same text,
    here and in Python; another --seed gives another one.

    For example:

        saccade complete "Once upon a time"
        saccade complete "ROMEO:" --model shakespeare --max-tokens 200 --seed 1
        saccade complete "Once upon a time" --n 3 --temperature 1 --top-p 0.9
        saccade complete "To be, or not" --model shakespeare --temperature 0 --format json
        cat prompt.txt | saccade complete --stop "##"

    Parameters
    ----------
    prompts:
        Texts to continue.
    model:
        Name of a bundled model, or a model folder.
    max_tokens:
        Largest number of tokens to write. Past the model's context it goes on from the last half of it.
    temperature:
        Below 1 favours likely tokens, above 1 gives more variety; 0 always takes the most likely token. Default: 0.8.
    top_k:
        Sample from this many of the most likely tokens only.
    top_p:
        Sample from the smallest set of tokens with this total probability.
    repetition:
        Repetition penalty. Above 1, tokens that occurred before become less likely.
    stop:
        A string that ends the completion and is not printed. May be repeated.
    seed:
        Random seed. The same seed gives the same text.
    n:
        Number of completions per prompt.
    stream:
        Show the text as it is written.
    echo:
        Print the prompt before its completion.
    format:
        json: one JSON object per line.
    look:
        Draw the attention weights: into FILE.png or FILE.svg, or in the terminal if no file is given.
    layer:
        Layer to draw, counted from 1.
    head:
        Head to draw, counted from 1. Default: the mean of all heads.
    output:
        FILE for the answers. Default: standard output.
    quiet:
        No notices; errors are still printed.
    exact:
        Compute in fp32 instead of the fastest near-lossless format (see saccade doctor).
    int8:
        Use 8-bit weights: faster on large models; some words may differ.
    """
    _check(max_tokens, temperature, n, stop)
    how = Options(exact=exact, int8=int8).how
    if look is None and (layer is not None or head is not None):
        raise WrongUse("--layer and --head say what to draw: add --look")
    if look is not None and (n > 1 or len(prompts) > 1):
        raise WrongUse("--look draws one text: give one prompt, and leave out --n")
    if look is not None and str(look) != "-":
        from saccade.look.picture import check_suffix

        check_suffix(look)
    given = _texts(prompts, quiet=quiet)
    from saccade.decode.sample import Drawing
    from saccade.pipelines.pipeline import Request

    if not 0 <= seed < 2**40:
        raise WrongUse(f"--seed must be between 0 and {2**40 - 1}, not {seed}")
    request = Request(
        temperature=temperature,
        seed=seed,
        top_k=top_k,
        top_p=top_p,
        repetition=repetition,
        stop=tuple(stop),
        max_tokens=max_tokens,
    )
    Drawing(temperature or None, top_k, top_p, repetition)  # checks the numbers before anything is loaded
    completer = load_language_model(model, how)[0]
    for prompt in given:
        if notice := completer.slides(prompt, request):
            tell(notice, quiet=quiet)
    with answers_to(output):
        if format == "text" and stream and n == 1 and look is None:
            for number, prompt in enumerate(given):
                _stream(completer, prompt, request, number, echo=echo, last=number == len(given) - 1)
            return 0
        return _all(completer, given, request, n, echo=echo, format=format, look=(look, layer, head), quiet=quiet)


def score(
    *texts: str,
    model: ModelName = ROW.model,
    format: Literal["text", "json"] = "text",
    output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
    quiet: Annotated[bool, Parameter(name=["--quiet", "-q"], negative="")] = False,
) -> int:
    """Print the probability of each piece of a text: of each argument, or of all of standard input.

    On a terminal, likely pieces are green and unlikely ones red. json gives natural log-probabilities.

    For example:

        saccade score "Once upon a time there was a little girl."
        saccade score "ROMEO: my lord" --model shakespeare --format json
        saccade score < essay.txt

    Parameters
    ----------
    texts:
        Texts to score.
    model:
        Name of a bundled model, or a model folder.
    format:
        json: one JSON object per line.
    output:
        FILE for the answers. Default: standard output.
    quiet:
        No notices; errors are still printed.
    """
    given = _texts(texts, quiet=quiet)
    if any(not text for text in given):
        raise UserError("an empty text has no pieces to score")

    completer = load_language_model(model, "exact")[0]
    with answers_to(output):
        for text in given:
            _score(*completer.surprises(text), text, format)
    return 0


def _score(pieces: list[str], logprobs: list[float | None], text: str, format: str) -> None:
    if format == "text":
        _colour(pieces, logprobs)
        return
    tokens = [
        {"text": piece, "logprob": None if logprob is None else round(logprob, 5)}
        for piece, logprob in zip(pieces, logprobs, strict=True)
    ]
    whole = sum(logprob for logprob in logprobs if logprob is not None)
    print(json.dumps({"text": text, "logprob": round(whole, 5), "tokens": tokens}, ensure_ascii=False))


def _check(max_tokens: int, temperature: float | None, n: int, stop: list[str]) -> None:
    """Before anything is loaded."""
    if not 1 <= max_tokens <= MOST_TOKENS:
        raise WrongUse(f"--max-tokens must be between 1 and {MOST_TOKENS:,}, not {max_tokens}")
    if temperature is not None and not 0 <= temperature <= 1000:
        raise WrongUse(f"--temperature must be between 0 and 1000, not {temperature}")
    if not 1 <= n <= MOST_COMPLETIONS:
        raise WrongUse(f"--n must be between 1 and {MOST_COMPLETIONS:,}, not {n}")
    if "" in stop:
        raise WrongUse("--stop needs a string that is not empty")


def _texts(given: tuple[str, ...], *, quiet: bool) -> list[str]:
    """The arguments, or all of standard input as one text, its last line end left out."""
    if given and given != (STREAM,):
        return list(checked(given, ROW.source.longest))
    if sys.stdin.isatty():
        tell("reading standard input as one text; Ctrl-D ends it", quiet=quiet)
    # No character has more than four bytes: what is longer than this is too long, wherever the reading stopped.
    most = 4 * ROW.source.longest
    content = sys.stdin.buffer.read(most + 1)
    if len(content) > most:
        raise UserError(f"more than {most:,} bytes; at most {ROW.source.longest:,} characters are read in one text")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UserError(
            f"standard input is not UTF-8 (byte 0x{content[error.start]:02x} at byte {error.start + 1:,})"
        ) from None
    return list(checked([text.removesuffix("\n").removesuffix("\r")], ROW.source.longest))


def _stream(completer: "Completer", prompt: str, request: "Request", number: int, *, echo: bool, last: bool) -> None:
    if echo:
        print(prompt, end="", flush=True)
    try:
        for piece in completer.stream(prompt, request, number):
            print(piece, end="", flush=True)
    finally:
        # End the line, also after an interruption.
        print("" if last else "\n", flush=True)


def _all(
    completer: "Completer",
    prompts: list[str],
    request: "Request",
    n: int,
    *,
    echo: bool,
    format: str,
    look: tuple[Path | None, int | None, int | None],
    quiet: bool,
) -> int:
    """Every completion of every prompt; the k-th completion of a prompt does not depend on the others."""
    asked = [prompt for prompt in prompts for _ in range(n)]
    numbers = [place + (copy << 20) for place in range(len(prompts)) for copy in range(n)]
    failed = False
    for place, answer in enumerate(completer.answer(asked, request, numbers=numbers)):
        if isinstance(answer, UserError):
            failed = True
            print(f"saccade: prompt {place // n + 1}: {answer}", file=sys.stderr)
            continue
        if format == "json":
            print(json.dumps(answer.record() | {"seed": request.seed}, ensure_ascii=False))
        else:
            print((answer.prompt if echo else "") + answer.text, end="\n\n" if place < len(asked) - 1 else "\n")
        file, layer, head = look
        if file is not None:
            draw_looks(answer, file, layer, head, quiet=quiet)
    sys.stdout.flush()
    return 1 if failed else 0


def _colour(pieces: list[str], logprobs: list[float | None]) -> None:
    """Green for likely pieces, through yellow, to red for unlikely ones."""
    from rich.console import Console
    from rich.text import Text

    line = Text()
    for piece, logprob in zip(pieces, logprobs, strict=True):
        if logprob is None:
            line.append(piece)
            continue
        share = min(1.0, -logprob / 8.0)
        red, green = int(60 + 195 * min(1.0, 2 * share)), int(60 + 140 * min(1.0, 2 - 2 * share))
        line.append(piece, style=f"rgb({red},{green},70)")
    known = [logprob for logprob in logprobs if logprob is not None]
    console = Console(highlight=False, soft_wrap=True)
    console.print(line)
    mean = sum(known) / max(1, len(known))
    console.print(f"log-probability {sum(known):.2f} over {len(known)} tokens, {mean:.3f} each", style="dim")
