"""A real Chromium for the tests of the page, and the page's server beside it."""

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from saccade.view.desk import Desk
from saccade.view.models import Models
from saccade.view.server import ViewServer

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
PLACES = ("/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome")


def chromium() -> str:
    """Where Chromium is; without one the test is skipped, in CI it fails."""
    found = os.environ.get("SACCADE_CHROMIUM") or next((one for one in PLACES if shutil.which(one)), "")
    if not found:
        why = "no Chromium found: apt-get install chromium, or set SACCADE_CHROMIUM to its path"
        if os.environ.get("SACCADE_CI"):
            pytest.fail(why)
        pytest.skip(why)
    return found


@contextmanager
def browser() -> Iterator[Any]:
    """A headless Chromium."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: pip install '.[test]'")
    path = chromium()
    with api.sync_playwright() as playwright:
        # What a click changes is drawn with the next frame, which a busy machine may have late.
        opened = playwright.chromium.launch(executable_path=path, args=FLAGS, slow_mo=40)
        yield opened
        opened.close()


@contextmanager
def serving(*names: str, **first: object) -> Iterator[ViewServer]:
    """The page's server; `first`: what it shows when it opens."""
    server = ViewServer(Desk(Models(list(names)), {"model": names[0], **first}))
    server.serve_aside()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


@dataclass
class Watched:
    """A page of which nothing is missed: errors, messages, where its requests go."""

    page: Any
    messages: list[str] = field(default_factory=list)
    hosts: set[str] = field(default_factory=set)

    @classmethod
    def open(cls, browser: Any, address: str, **options: Any) -> "Watched":
        options = {"viewport": {"width": 1440, "height": 1000}} | options
        one = cls(browser.new_context(**options).new_page())
        one.page.set_default_timeout(30_000)
        one.page.on("console", lambda message: one.messages.append(message.text))
        one.page.on("pageerror", lambda error: one.messages.append(str(error)))
        one.page.on("request", lambda request: one.hosts.add(request.url.split("/")[2]))
        one.page.goto(address)
        return one

    def ready(self) -> Any:
        """The page, once its first answer is there."""
        self.page.wait_for_selector(".matrix canvas")
        until(self.page, "document.querySelector('.readout')?.textContent.length > 0")
        return self.page


def until(page: Any, condition: str, *, seconds: float = 30) -> None:
    """Waits for what JavaScript says of the page. Playwright's own way is refused by the page's policy."""
    ends = time.monotonic() + seconds
    while not page.evaluate(condition):
        assert time.monotonic() < ends, f"never came true: {condition}"
        page.wait_for_timeout(20)


def output(page: Any, letter: str) -> str:
    """The text of an output, without the marks of differences."""
    row = page.locator(f".output:has(.letter:text-is('{letter}'))")
    row.locator(".facts").wait_for()
    text: str = row.locator(".text").inner_text()
    return text


def written_page(tmp_path: Path, *, model: str = "en-es", text: str = "this cat is very large") -> Path:
    """A recorded look as one file."""
    from saccade.cli.view import write_page

    file = tmp_path / "look.html"
    write_page(model, text, file, quiet=True)
    return file
