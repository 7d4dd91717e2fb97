"""`saccade view`: the page, served on this machine; and the page as one file for `saccade look -o FILE.html`."""

import base64
import json
import sys
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from saccade.cli.names import ModelName
from saccade.cli.output import tell
from saccade.errors import UserError, WrongUse

LARGEST_INPUT = 20 * 2**20


def view(
    *arguments: ModelName,
    port: int = 0,
    open_page: Annotated[bool | None, Parameter(name="--open", show_default=False)] = None,
    format: Literal["text", "json"] = "text",
    quiet: Annotated[bool, Parameter(name=["--quiet", "-q"], negative="")] = False,
) -> int:
    """Look inside models in the browser: type, hover, switch off heads, hide words, compare.

    The page is served on this machine only, under an address with a random token, until Ctrl-C. It needs no network.

    For example:

        saccade view
        saccade view en-es "this cat is very large"
        saccade view en-es en-es-rnn "the girl reads a book"
        saccade view en-es en-es@int8
        saccade view runs/my-captions photo.jpg

    Parameters
    ----------
    arguments:
        Models, by name or folder; the second is shown beside the first. Perhaps with @int8 or @int16 behind, for that
        arithmetic. Then perhaps the input: a text or a file.
    port:
        Port to listen on; 0 takes a free one.
    open_page:
        Open the page in the browser. Default: on a terminal with a screen.
    format:
        json: the address as a JSON object.
    quiet:
        Print no notes.
    """
    if not 0 <= port <= 65535:
        raise WrongUse(f"--port must be between 0 and 65535, not {port}")
    names, raw = _parted(arguments)
    from saccade.view.desk import Desk
    from saccade.view.models import Models
    from saccade.view.server import ViewServer

    models = Models(names)
    offers = [models.offer(name) for name in names]
    first: dict[str, object] = {"model": names[0] if names else "en-es"}
    if len(names) > 1:
        first["other"] = names[1]
    if raw:
        takes = offers[0].takes if offers else "text"
        first |= {"text": raw} if takes in ("text", "pair") else _file(raw)
    try:
        server = ViewServer(Desk(models, first), port)
    except OSError as error:
        raise UserError(f"cannot listen on port {port}: {error.strerror}; --port 0 takes a free one") from None
    print(json.dumps({"address": server.address}) if format == "json" else server.address, flush=True)
    tell("the page is open until Ctrl-C; nobody else can open this address", quiet=quiet)
    if open_page or (open_page is None and _has_screen()):
        import webbrowser

        webbrowser.open(server.address)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        tell("closed", quiet=quiet)
    finally:
        server.server_close()
    return 0


def write_page(
    model: str, raw: str, file: Path, *, prefix: str | None = None, question: str | None = None, quiet: bool = False
) -> int:
    """One input's run as a page in one file."""
    if not file.parent.is_dir():
        raise UserError(f"{file}: there is no folder {file.parent}")
    from saccade.folder import replace_file
    from saccade.view.models import Models
    from saccade.view.page import one_file
    from saccade.view.runs import Ask, make_run
    from saccade.view.sharing import shared

    models = Models([model])
    offer = models.offer(model)
    given = {"text": raw} if offer.takes in ("text", "pair") else _file(raw) | {"text": question or ""}
    given.pop("name", "")
    ask = Ask.of({"id": "A", "model": model, "prefix": prefix or "", **given}, where="look")
    run = make_run(models, ask, None, lambda _: None)
    content, left_out = shared([run])
    title = f"Saccade: {raw[:60]}"
    replace_file(file, one_file(content, title).encode("utf-8"))
    tell(f"wrote {file}{f': {left_out}' if left_out else ''}", quiet=quiet)
    return 0


def _parted(arguments: tuple[str, ...]) -> tuple[list[str], str]:
    """The models, and the input behind them."""
    from saccade.pipelines.load import bundled_models
    from saccade.view.models import ARITHMETICS

    bundled = {path.name for path in bundled_models()}

    def is_model(word: str) -> bool:
        base, _, how = word.rpartition("@")
        name = base if base and how in ARITHMETICS else word
        return name in bundled or (Path(name) / "config.json").is_file()

    names = [word for word in arguments if is_model(word)]
    others = [word for word in arguments if not is_model(word)]
    if len(others) > 1:
        raise WrongUse(f"{others[0]!r} and {others[1]!r}: one input at a time, behind the models; see saccade models")
    return names, others[0] if others else ""


def _file(name: str) -> dict[str, str]:
    from saccade.files import read_file

    return {"name": Path(name).name, "file": base64.b64encode(read_file(Path(name), LARGEST_INPUT)).decode("ascii")}


def _has_screen() -> bool:
    import os

    return sys.stdout.isatty() and (sys.platform in ("darwin", "win32") or bool(os.environ.get("DISPLAY")))
