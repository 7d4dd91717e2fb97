"""The pictures in docs/page.md: `python docs/page_pictures.py [FOLDER]`. Needs Chromium, see tests/browser.py."""

import sys
from io import BytesIO
from pathlib import Path
from typing import Any

from PIL import Image

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from browser import Watched, browser, output, serving

SENTENCE = "the girl reads the book she was given"
SHOTS: dict[str, dict[str, Any]] = {
    "page": {"viewport": {"width": 1360, "height": 1010}},
    "page-dark": {"viewport": {"width": 1360, "height": 860}, "color_scheme": "dark"},
    "page-phone": {"viewport": {"width": 390, "height": 1240}},
}


def main(folder: Path) -> None:
    with serving("en-es", text=SENTENCE) as server, browser() as chrome:
        for name, options in SHOTS.items():
            one = Watched.open(chrome, server.address, **options)
            page = one.ready()
            strips = page.locator(".strip")
            if name == "page":
                strips.nth(0).locator(".piece").nth(1).click()
                page.keyboard.press("h")
                output(page, "B")
                page.keyboard.press("Escape")
            strips.nth(1).locator(".piece").nth(7 if name == "page-dark" else 1).hover()
            page.wait_for_timeout(400)
            shot = Image.open(BytesIO(page.screenshot())).convert("RGB")
            shot.quantize(160, dither=Image.Dither.NONE).save(folder / f"{name}.png", optimize=True)
            assert one.messages == []


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "pictures")
