"""How quick the page is, by the browser's own clock: `python tests/page_speed.py`.

Hovering over 512 tokens in frames per second, opening 2,048 tokens, an intervention on en-es, loading the page's files.
Random weights stand for models that read so much. Prints one line for each; what is asked for stands behind it.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

from browser import Watched, browser, serving, until
from saccade.view import page
from saccade.view.page import FOLDER, one_file
from saccade.view.recording import entropies, planes, thumbnails, to_bytes
from saccade.view.runs import Ask, make_run

HOVER = """async () => {
    const pieces = [...document.querySelectorAll('.strip:last-child .piece')];
    const frames = [];
    let last = performance.now();
    for (let i = 0; i < 180; i++) {
        const piece = pieces[(i * 37) % pieces.length];
        piece.dispatchEvent(new PointerEvent('pointermove', { bubbles: true }));
        await new Promise((done) => requestAnimationFrame(done));
        const now = performance.now();
        frames.push(now - last);
        last = now;
    }
    frames.sort((a, b) => a - b);
    return [1000 * frames.length / frames.reduce((a, b) => a + b), frames[Math.floor(0.95 * frames.length)]];
}"""


LOADED = """performance.getEntriesByType('resource').filter((one) => /\\.(js|css)$/.test(one.name))
    .reduce((last, one) => Math.max(last, one.responseEnd), 0)"""


def record(count: int, layers: int, heads: int) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """A text of so many tokens that looks at itself, sharply."""
    random = np.random.default_rng(0)
    arrays: dict[str, np.ndarray] = {}
    looks = []
    for layer in range(layers):
        scores = random.normal(size=(heads, count, count)).astype(np.float32) * 3
        weights = np.exp(scores) / np.exp(scores).sum(axis=-1, keepdims=True)
        kept = planes(weights)
        arrays |= {
            f"run0/w{layer}": kept,
            f"run0/t{layer}": thumbnails(kept),
            f"run0/e{layer}": entropies(kept[:, :64]),
        }
        look = {"site": f"encoder.blocks.{layer}.self_attention", "kind": "encoder", "memory": "source", "part": 0}
        looks.append(
            look | {"title": "", "layer": layer + 1, "heads": heads, "rows": 0, "columns": 0, "stored": "full"}
        )
    pieces = [{"text": f" word{place}", "word": place} for place in range(count)]
    run = {"id": "A", "parent": None, "model": "random", "task": "masked", "digest": "", "changes": [], "prefix": ""}
    run |= {"input": {"kind": "text", "text": "random"}, "text": "random", "score": 1.0, "score_kind": "probability"}
    run |= {"logprob": None, "others": [], "arithmetic": "exact", "seconds": 0.0, "notes": [], "seed": None}
    axes = [{"id": 0, "kind": "text", "pieces": pieces}]
    one = {"run": run, "axes": axes, "looks": looks, "steps": [], "finished": [], "written": [], "architecture": []}
    return {"runs": [one], "left_out": ""}, arrays


def opened(chrome: Any, folder: Path, count: int, layers: int, heads: int) -> tuple[Watched, float]:
    """The page with such a record, and the milliseconds from the start to the drawn matrix."""
    file = folder / f"{count}.html"
    file.write_text(one_file(to_bytes(*record(count, layers, heads)), "speed"), "utf-8")
    one = Watched.open(chrome, file.as_uri())
    one.page.wait_for_selector(".matrix canvas")
    until(one.page, "document.querySelector('.matrix canvas').width > 300")
    drawn = one.page.evaluate("new Promise((done) => requestAnimationFrame(() => done(performance.now())))")
    assert one.messages == [], one.messages
    return one, float(drawn)


def main(folder: Path) -> None:
    page.LARGEST_PAGE = 2**26  # whole matrices, as the server sends them; a file would keep the largest of each row
    found: dict[str, Any] = {}
    sizes = [path.stat().st_size for path in FOLDER.rglob("*") if path.is_file()]
    found["page files, kB (at most 400)"] = sum(sizes) / 1000
    with serving("en-es", text="this cat is very large") as server:
        models, ask = server.desk.models, Ask(id="A", model="en-es", text="this cat is very large")
        first = make_run(models, ask, None, lambda _: None)
        times, works = [], []
        for place in range(20):
            changes = ({"kind": "hide", "memory": "source", "place": place % 5},)
            asked = Ask.read(ask.table() | {"id": "B", "parent": "A", "changes": changes}, where="speed")
            began, worked = time.perf_counter(), time.process_time()
            make_run(models, asked, first, lambda _: None)
            times.append(time.perf_counter() - began)
            works.append(time.process_time() - worked)
        found["intervention on en-es, ms of the clock (under 150)"] = 1000 * float(np.median(times))
        found["the same, ms of the processor"] = 1000 * float(np.median(works))
        with browser() as chrome:
            one = Watched.open(chrome, server.address)
            one.ready()
            found["page files loaded, ms (under 500)"] = one.page.evaluate(LOADED)
            one.page.context.close()
            medium, _ = opened(chrome, folder, 512, 1, 4)
            rate, slow = medium.page.evaluate(HOVER)
            found["hovering at 512 tokens, frames per second (at least 50)"] = rate
            found["slowest twentieth of frames, ms"] = slow
            medium.page.context.close()
            large, drawn = opened(chrome, folder, 2048, 1, 1)
            found["2,048 tokens open, ms (under 3,000)"] = drawn
            found["hovering at 2,048 tokens, frames per second"] = large.page.evaluate(HOVER)[0]
            large.page.context.close()
    for name, value in found.items():
        print(f"{name}: {value:.1f}")
    print(json.dumps(found), file=sys.stderr)


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as room:
        main(Path(room))
