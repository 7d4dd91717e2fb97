"""Fills in a questionnaire in a real browser, as a person would, and reads the answers back.

    pip install playwright, and Chromium as the system's package has it
    python tests/fill_form.py                 # a picture of noise, 60 questions, Chromium found on the path
    python tests/fill_form.py --chromium /usr/bin/chromium --masks 400

The form is opened from a file, without a network. Half of the questions are answered with the mouse, half with keys;
the page is loaded again in between, and goes on where it was. Somebody who answers by a hidden region must be
understood: the region is found. `test_form.py` runs it where there is a browser.
"""

import argparse
import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from saccade.explaining.covers import PictureCover
from saccade.explaining.questionnaire import read_answers, write_form

SIDE = 64
REGION = slice(12, 34), slice(30, 52)
NAMES = ("chromium", "chromium-browser", "google-chrome")


def chromium() -> str | None:
    """A browser of this machine."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


def fill(page: Any, scores: list[int], folder: Path) -> Path:
    """Answer every question, 0 for no to 4 for yes, and save."""
    buttons = page.locator("[data-score]")
    half = len(scores) // 2
    for score in scores[:half]:
        buttons.nth(score).click()
    page.reload()
    for score in scores[half:]:
        page.keyboard.press(str(score + 1))
    with page.expect_download() as waiting:
        page.click("#save")
    file = folder / "answers.json"
    waiting.value.save_as(file)
    return file


def run(browser: str, masks: int) -> tuple[bool, int]:
    """Whether the region was found, and how many answers came back."""
    from playwright.sync_api import sync_playwright

    picture = (np.random.default_rng(0).random((SIDE, SIDE, 3)) * 255).astype(np.uint8)
    cover, region = PictureCover(picture), np.zeros((SIDE, SIDE), dtype=bool)
    region[REGION] = True
    seen = [float(mask[region.reshape(-1)].mean()) for mask in cover.masks(0, 0, masks)]
    scores = [min(4, int(5 * share)) for share in seen]
    with tempfile.TemporaryDirectory() as name, sync_playwright() as play:
        folder = Path(name)
        form = write_form(cover, folder / "form.html", masks=masks, seed=0, question="Do you see it?")
        opened = play.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        context = opened.new_context(accept_downloads=True, offline=True)
        page = context.new_page()
        complaints: list[str] = []
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
        page.goto(form.as_uri())
        answers = fill(page, scores, folder)
        opened.close()
        assert not complaints, complaints
        estimate = read_answers(cover, answers)
        given = dict(json.loads(answers.read_text("utf-8"))["answers"])
    assert [given[number] for number in range(masks)] == [score / 4 for score in scores]
    row, column = divmod(int(estimate.values_P.argmax()), SIDE)
    return bool(region[row, column]), estimate.count


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chromium", default=chromium(), help="the browser")
    parser.add_argument("--masks", type=int, default=60)
    asked = parser.parse_args()
    if asked.chromium is None:
        print("no Chromium on the path: name it with --chromium")
        return 2
    found, count = run(asked.chromium, asked.masks)
    print(f"{count} of {asked.masks} answers came back; the region was {'found' if found else 'not found'}")
    return int(not found)


if __name__ == "__main__":
    raise SystemExit(main())
