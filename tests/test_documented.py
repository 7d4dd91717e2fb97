"""What the README and the docs say about the bundled models is what these do."""

import json
import re
import shlex
from pathlib import Path

import pytest

import saccade
from saccade.pipelines.load import bundled_models, model_path
from saccade.pipelines.pipeline import Request
from tiny import answered, ask

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
COMMANDS = [
    line for page in PAGES for line in page.read_text(encoding="utf-8").splitlines() if line.startswith("saccade ")
]
PROMISED = sorted({tuple(part.strip() for part in line.split("# →")) for line in COMMANDS if "# →" in line})


def test_some_commands_promise_their_output() -> None:
    assert len(PROMISED) >= 4


@pytest.mark.parametrize(("command", "output"), PROMISED)
def test_a_documented_command_prints_what_is_documented(command: str, output: str) -> None:
    assert answered(ask(*shlex.split(command)[1:])) == f"{output}\n"


@pytest.mark.parametrize("path", bundled_models(), ids=lambda path: path.name)
def test_the_readme_has_every_model_with_its_size(path: Path) -> None:
    """The size of a model is that of its folder, in the README as in `saccade models`."""
    listed = [json.loads(line) for line in answered(ask("models", "--format", "json")).splitlines()]
    (megabytes,) = [row["megabytes"] for row in listed if row["name"] == path.name]
    card = (path / "README.md").read_text(encoding="utf-8")
    parameters = int(re.findall(r"parameters: ([\d,]+)", card)[0].replace(",", ""))
    (row,) = re.findall(rf"(?m)^\| `{path.name}` \|.*$", PAGES[0].read_text(encoding="utf-8"))
    assert f"| {parameters / 1e6:.1f} M parameters, {megabytes} MB |" in row


@pytest.mark.parametrize("name", ["en-es", "en-es-rnn", "tagger", "pronouncer"])
def test_the_readme_rounds_the_figure_of_the_card(name: str) -> None:
    card = (model_path(name) / "README.md").read_text(encoding="utf-8")
    value, half = re.findall(r"- test: .*? ([\d.]+) ± ([\d.]+)", card)[0]
    (row,) = re.findall(rf"(?m)^\| `{name}` \|.*$", PAGES[0].read_text(encoding="utf-8"))
    assert f"{float(value):.1f} ± {float(half):.1f}" in row


def test_documented_completions_fit_into_the_context() -> None:
    help_text = (Path(saccade.__file__).parent / "cli" / "complete.py").read_text(encoding="utf-8")
    shown = [line.strip() for line in help_text.splitlines() if line.strip().startswith("saccade complete")]
    found = [line for line in (*COMMANDS, *shown) if line.startswith("saccade complete") and "--max-tokens" in line]
    assert len(found) >= 3
    for line in found:
        words = shlex.split(line, comments=True)
        model = words[words.index("--model") + 1] if "--model" in words else "stories"
        request = Request(max_tokens=int(words[words.index("--max-tokens") + 1]))
        assert saccade.load(model).slides(words[2], request) is None, line
