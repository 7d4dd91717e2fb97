"""The files of the page, and all of them in one: modules joined in the order they need each other, data inside."""

import base64
import hashlib
import html
import json
import re
from functools import cache
from pathlib import Path

import saccade.look
from saccade.errors import UserError

FOLDER = Path(saccade.look.__file__).parent / "page"
TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
LARGEST_PAGE = 20 * 2**20
"""Bytes of a file that holds page and looks."""
_IMPORT = re.compile(r'^import\s*(\{[^}]*\}|htm)\s*from\s*"(\.[^"]+)";?\n', re.MULTILINE)
_EXPORTS = re.compile(r"export\s*\{([^}]*)\};?\s*\Z")
_DEFAULT = re.compile(r"export default\s+")


@cache
def page_file(name: str) -> tuple[str, bytes] | None:
    """The type and content of a file of the page; None where there is none of this name."""
    if not re.fullmatch(r"[a-z]+(/[a-z]+)?\.(html|js|css|svg)", name):
        return None
    path = FOLDER / name
    if not path.is_file():
        return None
    return f"{TYPES[path.suffix]}; charset=utf-8", path.read_bytes()


@cache
def joined_script() -> str:
    """All modules as one script; names at the top of our modules are different, and each library is wrapped."""
    parts: list[str] = []
    done: set[Path] = set()

    def add(path: Path) -> None:
        if path in done:
            return
        done.add(path)
        source = path.read_text("utf-8")
        for _, name in _IMPORT.findall(source):
            add((path.parent / name).resolve())
        parts.append(_wrapped(path, source) if path.parent.name == "vendor" else _plain(path, source))

    add((FOLDER / "main.js").resolve())
    return "\n".join(parts)


def _plain(path: Path, source: str) -> str:
    body = _IMPORT.sub("", source)
    if re.search(r"^import\b", body, re.MULTILINE) or "export default" in body:
        raise ValueError(f'{path.name}: only `import {{names}} from "./file.js"` can be joined')
    return re.sub(r"^export ", "", body, flags=re.MULTILINE)


def _wrapped(path: Path, source: str) -> str:
    """A library's short names stay its own."""
    source = re.sub(r"^//# sourceMappingURL.*$", "", source, flags=re.MULTILINE).strip()
    if found := _EXPORTS.search(source):
        names = [part.split(" as ") for part in found[1].split(",")]
        pairs = {(part[1] if len(part) > 1 else part[0]).strip(): part[0].strip() for part in names}
        body = source[: found.start()]
    else:  # a library of one function
        pairs, body = {path.stem: "only"}, _DEFAULT.sub("const only = ", source)
    given = ", ".join(f"{name}: {own}" for name, own in pairs.items())
    return f"const {{ {', '.join(pairs)} }} = (() => {{ {body}\nreturn {{ {given} }}; }})();"


def one_file(record: bytes, title: str) -> str:
    """The page with looks inside, which needs no server and asks none."""
    script, style = joined_script(), (FOLDER / "page.css").read_text("utf-8")
    data = base64.b64encode(record).decode("ascii")
    if len(data) + len(script) > LARGEST_PAGE:
        raise UserError(
            f"the page would have {(len(data) + len(script)) / 2**20:.0f} MB, more than {LARGEST_PAGE // 2**20}: "
            "look at a shorter input, or at less of it"
        )
    script = script.replace("</script", "<\\/script")
    policy = "; ".join(
        [
            "default-src 'none'",
            f"script-src '{_digest(script)}'",
            f"style-src '{_digest(style)}'",
            "connect-src 'none'",
            "img-src blob:",
            "media-src blob:",
            "base-uri 'none'",
            "form-action 'none'",
            "require-trusted-types-for 'script'",
            "trusted-types 'none'",
        ]
    )
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{html.escape(policy)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>{html.escape(title)}</title>\n<style>{style}</style>\n</head>\n<body>\n"
        '<div id="page"></div>\n'
        f'<script type="application/octet-stream" id="looks">{data}</script>\n'
        f'<script type="module">{script}</script>\n</body>\n</html>\n'
    )


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")


def in_json(values: object) -> str:
    """JSON that may stand in a page."""
    return json.dumps(values, ensure_ascii=True).replace("<", "\\u003c")
