"""`saccade view` and `saccade look -o FILE.html` as commands: what they say, what they refuse, the file they write."""

import json
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from saccade.view.page import joined_script
from tiny import ask, insist_one_line, write_tiny_captioner, write_tiny_model

VIEW = "from saccade.cli.main import main; main()"


def test_it_prints_an_address_serves_the_page_and_ends_by_ctrl_c() -> None:
    command = [sys.executable, "-c", VIEW, "view", "en-es", "good night", "--format", "json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address = json.loads(process.stdout.readline())["address"]
        found = re.fullmatch(r"(http://127\.0\.0\.1:\d+/)#t=([\w-]{32})", address)
        assert found is not None
        with urllib.request.urlopen(found[1], timeout=20) as answer:
            assert b'src="main.js"' in answer.read()
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=20) == 0
        assert process.stderr is not None
        assert "nobody else can open this address" in process.stderr.read()


def test_two_addresses_have_two_tokens() -> None:
    from saccade.view.safety import Door

    assert Door(80).token != Door(80).token
    assert "token" not in repr(Door(80))


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["view", "en-es", "one text", "another text"], 2, ["'one text'", "'another text'", "one input at a time"]),
        (["view", "--port", "70000"], 2, ["--port", "65535", "70000"]),
        (["look", "en-es", "hi", "-o", "OUT/look.html", "--layer", "1"], 2, ["all layers and heads"]),
        (["look", "en-es", "hi", "-o", "OUT/none/look.html"], 1, ["there is no folder"]),
        (["look", "en-ez", "hi", "-o", "OUT/look.html"], 2, ["did you mean en-es"]),
        (["look", "en-es", "x" * 100_001, "-o", "OUT/look.html"], 2, ["100,000"]),
    ],
    ids=lambda value: " ".join(map(str, value))[:40] if isinstance(value, list) else str(value),
)
def test_what_is_refused(tmp_path: Path, words: list[str], code: int, said: list[str]) -> None:
    insist_one_line(ask(*[word.replace("OUT", str(tmp_path)) for word in words]), code, said)


def test_a_port_that_is_taken_is_said() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        insist_one_line(ask("view", "--port", str(port)), 1, [str(port), "--port 0"])


@pytest.mark.parametrize("kind", ["text", "picture"])
def test_the_page_as_one_file(tmp_path: Path, kind: str) -> None:
    if kind == "text":
        model, raw = str(write_tiny_model(tmp_path / "model")), "one cat sees three dogs"
    else:
        from PIL import Image

        model, raw = str(write_tiny_captioner(tmp_path / "model")), str(tmp_path / "red.png")
        Image.new("RGB", (20, 30), "red").save(raw)
    said = ask("look", model, raw, "-o", tmp_path / "look.html")
    assert said.code == 0, said
    page = (tmp_path / "look.html").read_text("utf-8")
    assert joined_script()[:200] in page
    assert "connect-src &#x27;none&#x27;" in page
    assert not re.search(r"(src|href)=\"", page.split("<script")[0].replace('rel="icon"', ""))
    assert len(page) < 400_000
