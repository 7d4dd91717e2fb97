"""The page in a real Chromium: what a visitor does, by mouse and by keys, live and from a file."""

import base64
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from safetensors.numpy import save

import saccade
from browser import Watched, browser, output, serving, until, written_page
from hostile_texts import HOSTILE
from saccade.view.page import one_file
from saccade.view.server import ViewServer
from tiny import write_tiny_captioner

SENTENCE = "this cat is very large"
NODES = "script, iframe, object, embed, base, form, style, link, img, video, svg, math, details, meta"
AXE = Path(os.environ.get("SACCADE_AXE", "node_modules/axe-core/axe.min.js"))


@pytest.fixture(scope="module")
def chrome() -> Iterator[Any]:
    with browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def server() -> Iterator[ViewServer]:
    with serving("en-es", text=SENTENCE) as one:
        yield one


@pytest.fixture(scope="module")
def picture_model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(write_tiny_captioner(tmp_path_factory.mktemp("captioner") / "model"))


@pytest.fixture
def live(chrome: Any, server: ViewServer) -> Iterator[Watched]:
    one = Watched.open(chrome, server.address)
    one.ready()
    yield one
    assert one.messages == []
    assert one.hosts <= {f"127.0.0.1:{server.door.port}"}, "a request left"
    one.page.context.close()


def pieces(page: Any, side: int) -> Any:
    """The pieces of the input (0) or of the output (1)."""
    return page.locator(".strip").nth(side).locator(".piece")


def ran(page: Any) -> None:
    until(page, "!document.querySelector('.caret')")


def send(page: Any, text: str) -> None:
    """Types a text and waits until what was read of it is shown."""
    page.fill("#input", text)
    page.press("#input", "Enter")
    read = "document.querySelector('.strip .pieces')?.textContent.replace(/\\s|\\(end\\)/g, '')"
    until(page, f"{read} === {json.dumps(text.replace(' ', ''))}")
    ran(page)


def test_type_and_see_what_python_says(live: Watched) -> None:
    page = live.page
    page.fill("#input", "we are eating bread")
    page.press("#input", "Enter")
    page.locator(".output .text:has-text('pan')").wait_for()
    answer = saccade.load("en-es", "exact")("we are eating bread")
    assert output(page, "A") == answer.text
    weights = answer.looks.cross
    page.get_by_role("button", name="Table").click()
    layer = int(re.findall(r"layer (\d)", page.locator(".card h2").inner_text())[0])
    page.locator(".tablebox td").first.wait_for()
    shown = [float(cell) for cell in page.locator(".tablebox td").all_inner_texts() if cell]
    assert shown == pytest.approx(
        (100 * weights[layer - 1].mean(axis=0)).ravel().tolist(), abs=0.1
    )  # float16, one decimal


def test_hover_tells_where_a_word_looked_and_leaving_restores_the_pin(live: Watched) -> None:
    page = live.page
    readout = page.locator(".readout")
    pieces(page, 1).nth(1).hover()
    until(page, "document.querySelector('.readout').textContent.startsWith('gato, 2 of 6: cat')")
    pieces(page, 1).nth(4).click()
    pieces(page, 1).nth(1).hover()
    until(page, "document.querySelector('.readout').textContent.startsWith('gato')")
    page.mouse.move(5, 900)
    until(page, "document.querySelector('.readout').textContent.startsWith('grande')")
    page.keyboard.press("Escape")
    until(page, "document.querySelector('.readout').textContent.startsWith('Point')")
    assert readout.is_visible()


def test_hide_a_word_undo_and_a_is_never_overwritten(live: Watched) -> None:
    page = live.page
    before = output(page, "A")
    pieces(page, 0).nth(1).click()
    page.get_by_role("button", name="Hide it from the model").click()
    changed = output(page, "B")
    assert "gato" not in page.locator(".isB ins").inner_text()
    assert "CHANGED" in page.locator(".output.isB").inner_text()
    assert page.title().startswith("Changed: ")
    delta = float(page.locator(".delta").inner_text().replace("−", "-"))
    assert delta < -3
    assert output(page, "A") == before != changed
    assert pieces(page, 0).nth(1).get_attribute("aria-label") == "cat, hidden"
    assert "hide" in page.evaluate("location.hash")
    page.keyboard.press("Control+z")
    page.locator(".output.isB").wait_for(state="detached")
    assert output(page, "A") == before
    assert not page.title().startswith("Changed")
    page.keyboard.press("Control+Shift+z")
    page.locator(".output.isB .facts").wait_for()
    assert output(page, "B") == changed


def test_a_word_of_several_pieces_is_hidden_whole(live: Watched) -> None:
    page = live.page
    send(page, "the girl reads the book")
    pieces(page, 0).nth(3).click()
    page.get_by_role("button", name="Hide the whole word").click()
    output(page, "B")
    assert page.locator(".chip bdi").all_inner_texts() == ["read hidden", "s hidden"]
    assert page.locator(".strip .piece.hidden").count() == 2


def test_switch_off_a_head_and_all_of_a_layer(live: Watched) -> None:
    page = live.page
    heads = saccade.load("en-es", "exact")(SENTENCE).looks.cross.shape[1]
    page.locator(".head").nth(heads + 2).click()  # a layer has one picture more, of the mean
    page.get_by_role("button", name="Switch off head").click()
    page.locator(".output.isB .facts").wait_for()
    assert page.locator(".chip").inner_text().startswith("output → input head 2.2 off")
    assert page.locator(".head.off").count() == 1
    page.get_by_role("button", name="Layer off").click()
    until(page, f"document.querySelectorAll('.head.off').length === {heads + 1}")


def test_a_candidate_of_the_beam_is_gone_on_from(live: Watched) -> None:
    page = live.page
    page.get_by_role("button", name="Next step").click()
    until(page, "document.querySelector('.readout').textContent.startsWith('gato')")
    page.get_by_role("button", name="Previous step").click()
    until(page, "document.querySelector('.readout').textContent.startsWith('este')")
    second = page.locator(".bars button").nth(1)
    piece = second.inner_text().split()[0]
    second.click()
    assert page.locator(".output:has(.letter:text-is('C')) ins").first.inner_text().strip() == piece != "este"
    assert page.locator(".beam li.chosen").count() >= 1


def test_two_models_side_by_side(live: Watched) -> None:
    page = live.page
    page.get_by_label("Compare with").select_option("en-es-rnn")
    page.locator(".card").nth(1).wait_for()
    assert output(page, "M").startswith(saccade.load("en-es-rnn", "exact")(SENTENCE).text)
    assert "its only head" in page.locator(".card").nth(1).inner_text()
    pieces(page, 1).nth(1).hover()
    until(page, "[...document.querySelectorAll('.readout')].every(one => one.textContent.startsWith('gato'))")


def test_models_that_cut_a_text_differently_are_linked_by_where_pieces_stand(live: Watched) -> None:
    page = live.page
    send(page, "the girl reads the directive book")
    page.get_by_label("Compare with").select_option("en-es-rnn")
    page.locator(".card").nth(1).wait_for()
    texts = [page.locator(".card").nth(side).locator(".strip").first.locator(".piece") for side in (0, 1)]
    cut = [texts[side].all_inner_texts() for side in (0, 1)]
    assert cut[0] != cut[1]
    assert "".join(cut[0]) == "".join(cut[1])
    place = cut[0].index("book")
    texts[0].nth(place).hover()
    until(page, "[...document.querySelectorAll('.readout')].every(one => one.textContent.startsWith('book'))")


def test_an_explanation_comes_with_its_check(live: Watched) -> None:
    page = live.page
    page.get_by_role("button", name="Explain", exact=True).click()
    page.locator(".pane button.main").click()
    page.locator(".badge.passed, .badge.failed").wait_for()
    assert page.locator(".effects tbody tr").count() == 5
    assert " ± " in page.locator(".effects td").first.inner_text()
    page.get_by_label("For").select_option("2")
    page.locator(".pane button.main").click()
    until(page, "document.querySelectorAll('.effects td').length === 5")
    values = [float(text.split(" ")[0].replace("−", "-")) for text in page.locator(".effects td").all_inner_texts()]
    assert values.index(max(values)) == 1, "cat matters most for gato"


def test_which_head_matters_and_its_numbers(live: Watched) -> None:
    page = live.page
    page.get_by_role("button", name="Which head?").click()
    page.get_by_role("button", name="Switch off each head once").click()
    layers = saccade.load("en-es", "exact")(SENTENCE).looks.layers
    heads = sum(layer.weights_NTS.shape[0] for layer in layers)
    page.locator(f".count:text-is('{heads} of {heads}')").wait_for()
    assert page.locator(".effects tbody tr").count() == heads
    values = [float(text.replace("−", "-")) for text in page.locator(".effects td").all_inner_texts()]
    assert values == sorted(values)
    page.locator(".effects button").first.click()
    pieces(page, 1).nth(1).click()
    page.get_by_role("button", name="Numbers", exact=True).click()
    page.locator(".terms").nth(2).wait_for()
    for number in range(3):
        table = page.locator(".terms").nth(number)
        column = -2 if number == 1 else -1
        rows = [row.locator("td").all_inner_texts() for row in table.locator("tbody tr").all()]
        found = [
            float(row[column].replace("−", "-").replace("+", "")) for row in rows if row[column] not in ("", "masked")
        ]
        assert sum(found[:-1]) == pytest.approx(found[-1], abs=0.01), "the terms add up to the sum"
    page.get_by_role("button", name="Model", exact=True).click()
    page.locator(".partbox.attention").first.wait_for()
    assert page.locator(".partbox.attention").count() == len(layers)
    page.locator(".partbox.attention button").first.click()
    assert "softmax(q kᵀ" in page.locator(".formula").inner_text()


def test_by_keys_alone(live: Watched) -> None:
    page = live.page
    page.keyboard.press("/")
    page.keyboard.press("Control+a")
    page.keyboard.type("good night")
    page.keyboard.press("Enter")
    page.locator(".output .text:has-text('buenas noches')").wait_for()
    ran(page)
    page.evaluate("document.activeElement.blur()")
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.matches('.pieces')"):
            break
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    until(page, "document.querySelector('.pinned')?.textContent.includes('night')")
    page.keyboard.press("h")
    page.locator(".output.isB .facts").wait_for()
    page.keyboard.press("Escape")
    name = page.locator(".card h2").inner_text()
    page.keyboard.press("]")
    page.keyboard.press(".")
    until(page, f"document.querySelector('.card h2').innerText !== {json.dumps(name)}")
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.matches('[role=gridcell]')"):
            break
    page.keyboard.press("ArrowDown")
    assert " looks at " in page.evaluate("document.activeElement.textContent")
    page.keyboard.press("?")
    page.get_by_role("dialog").wait_for()
    page.keyboard.press("Escape")
    page.get_by_role("dialog").wait_for(state="detached")


def test_what_is_taken_away(live: Watched, tmp_path: Path) -> None:
    page = live.page
    pieces(page, 0).nth(1).click()
    page.keyboard.press("h")
    page.locator(".output.isB .facts").wait_for()
    saved = {}
    for name in ("Page in one file", "Picture", "Drawing", "Numbers (.json)"):
        page.get_by_role("button", name="Share", exact=True).click()
        with page.expect_download() as waiting:
            page.get_by_role("button", name=name).click()
        saved[name] = tmp_path / waiting.value.suggested_filename
        waiting.value.save_as(saved[name])
    numbers = json.loads(saved["Numbers (.json)"].read_text("utf-8"))
    assert numbers["changed"] is True
    assert "CHANGED (cat hidden)" in numbers["title"]
    assert "CHANGED (cat hidden)" in saved["Drawing"].read_text("utf-8")
    assert saved["Picture"].read_bytes()[:4] == b"\x89PNG"
    other = Watched.open(page.context.browser, saved["Page in one file"].as_uri())
    other.ready()
    assert output(other.page, "B") == output(page, "B")
    assert other.messages == []
    other.page.context.close()


def test_a_link_opens_what_was_shown(live: Watched, server: ViewServer) -> None:
    page = live.page
    page.locator(".head").nth(2).click()
    pieces(page, 0).nth(1).click()
    page.keyboard.press("h")
    page.locator(".output.isB .facts").wait_for()
    head, text = page.locator(".card h2").inner_text(), output(page, "B")
    page.reload()
    page.locator(".output.isB .facts").wait_for()
    assert page.locator(".card h2").inner_text() == head
    assert output(page, "B") == text
    assert server.door.token not in page.evaluate("location.href")


def test_late_answers_are_never_mixed_with_another_input(live: Watched) -> None:
    page = live.page
    for text in ("one", "the house is red and the garden is green", "two dogs", "good night"):
        page.fill("#input", text)
        page.press("#input", "Enter")
    page.locator(".output .text:has-text('buenas noches')").wait_for()
    ran(page)
    page.wait_for_timeout(300)
    assert output(page, "A") == "buenas noches"
    assert "".join(pieces(page, 0).all_inner_texts()).startswith("goodnight")


def test_a_file_shows_recorded_looks_and_asks_nobody(chrome: Any, tmp_path: Path) -> None:
    one = Watched.open(chrome, written_page(tmp_path).as_uri(), offline=True)
    page = one.ready()
    assert output(page, "A") == "este gato es muy grande"
    pieces(page, 1).nth(1).hover()
    until(page, "document.querySelector('.readout').textContent.startsWith('gato, 2 of 6: cat')")
    page.locator(".head").nth(3).click()
    assert page.get_by_role("button", name="Run").is_disabled()
    assert "saccade view" in page.locator(".recorded").inner_text()
    assert "saccade view" in (page.get_by_role("button", name="Switch off head").get_attribute("title") or "")
    assert one.messages == []
    assert one.hosts <= {""}
    page.context.close()


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "too short"),
        (b"\xff" * 64, "cut off"),
        (save({}, metadata={"record": json.dumps({"format": 99})}), "newer Saccade"),
        (save({}, metadata={"record": "7"}), "says nothing"),
        (
            (200).to_bytes(8, "little") + b'{"w":{"dtype":"F16","shape":[4,4],"data_offsets":[0,99]}}'.ljust(200),
            "16 numbers",
        ),
    ],
    ids=["empty", "noise", "future", "no record", "oversized"],
)
def test_damaged_and_future_files_are_said_to_be(chrome: Any, tmp_path: Path, data: bytes, said: str) -> None:
    file = tmp_path / "damaged.html"
    file.write_text(one_file(data, "damaged"), "utf-8")
    one = Watched.open(chrome, file.as_uri())
    one.page.locator(".alarm").wait_for()
    assert said in one.page.locator(".alarm").inner_text()
    assert one.messages == []
    one.page.context.close()


def test_a_server_that_is_gone_is_said_and_what_is_here_stays(chrome: Any) -> None:
    """The command itself, and killed."""
    code = "from saccade.cli.main import main; main(['view', '--quiet', 'en-es', 'good night'])"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as command:
        assert command.stdout is not None
        try:
            one = Watched.open(chrome, command.stdout.readline().strip())
            page = one.ready()
        finally:
            command.kill()
    page.fill("#input", "more")
    page.press("#input", "Enter")
    page.locator(".alarm").wait_for()
    assert "saccade view" in page.locator(".alarm").inner_text()
    assert output(page, "A") == "buenas noches"
    page.locator(".head").nth(1).click()
    until(page, "document.querySelector('.card h2').textContent.includes('head 2')")
    page.context.close()


def test_hostile_inputs_are_shown_as_text(chrome: Any) -> None:
    """One after the other in one page; the pieces and the title are the input, and no node comes of it."""
    with serving("speller", text="one") as server:
        one = Watched.open(chrome, server.address)
        page = one.ready()
        nodes = f"document.querySelectorAll({NODES!r}).length"
        usual = page.evaluate(nodes)
        for text in HOSTILE:
            shown = page.evaluate(
                """async (text) => {
                    const { state, set } = await import('./state.js');
                    const { RunRecord } = await import('./record.js');
                    const old = state.runs.A;
                    const record = structuredClone(old.record);
                    record.run.text = record.run.input.text = text;
                    for (const axis of record.axes) axis.pieces[0].text = text;
                    for (const step of record.steps.flat()) {
                        step.chosen = text;
                        for (const one of [...step.likely, ...step.beginnings]) one.text = text;
                    }
                    set({ text, runs: { A: new RunRecord(record, old.arrays) } });
                    await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
                    return [document.querySelector('#input').value, document.querySelector('.output .text').textContent,
                            document.querySelector('.piece').getAttribute('aria-label'), document.title];
                }""",
                text,
            )
            value = text.replace("\r\n", "\n")
            assert shown[0] == value
            assert shown[1] == text
            assert (
                shown[2].startswith(text.strip(" ")[:20].replace("\t", "⇥").replace("\n", "↵")[:3])
                or not text.isprintable()
            )
            assert page.evaluate(nodes) == usual, text[:40]
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), text[:40]
        for text in HOSTILE[::6]:
            page.fill("#input", text[:400])
            page.press("#input", "Enter")
            until(page, "!document.querySelector('.caret')")
            assert page.evaluate(nodes) == usual, text[:40]
        assert one.messages == []
        page.context.close()


def png(red: int = 200) -> bytes:
    from PIL import Image

    written = BytesIO()
    Image.new("RGB", (64, 48), (red, 80, 40)).save(written, "PNG")
    return written.getvalue()


DROP = """([name, type, text]) => {
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    const transfer = new DataTransfer();
    transfer.items.add(new File([bytes], name, { type }));
    document.body.dispatchEvent(new DragEvent('drop', { dataTransfer: transfer, bubbles: true, cancelable: true }));
}"""


def test_a_picture_is_dropped_and_an_svg_is_refused(chrome: Any, picture_model: str) -> None:
    with serving(picture_model) as server:
        one = Watched.open(chrome, server.address)
        page = one.page
        page.locator(".filebox").wait_for()
        page.evaluate(DROP, ["evil.svg", "image/svg+xml", base64.b64encode(b"<svg/>").decode()])
        assert "SVG is refused" in page.locator(".alarm").inner_text()
        page.evaluate(DROP, ["red.png", "image/png", base64.b64encode(png()).decode()])
        page.locator(".picture canvas").wait_for()
        page.locator(".output .facts").wait_for()
        rows = page.locator(".strip .piece")
        rows.first.hover()
        until(page, "document.querySelector('.readout').textContent.includes('row ')")
        page.locator(".picture canvas").click(position={"x": 30, "y": 30})
        page.get_by_role("button", name="Hide it from the model").click()
        page.locator(".output.isB .facts").wait_for()
        assert "row 1, column 1 hidden" in page.locator(".chip").inner_text()
        assert one.messages == []
        page.context.close()


def test_a_sound_plays_while_the_cursor_moves(chrome: Any, server: ViewServer) -> None:
    """No bundled model hears yet: a run with a time axis is made in the page."""
    one = Watched.open(chrome, server.address)
    page = one.ready()
    page.evaluate(
        """async () => {
            const { state, set } = await import('./state.js');
            const { RunRecord } = await import('./record.js');
            const rate = 16000, seconds = 1, count = 20;
            const bytes = new DataView(new ArrayBuffer(44 + 2 * rate));
            const word = (at, text) => [...text].forEach((letter, i) => bytes.setUint8(at + i, letter.charCodeAt(0)));
            word(0, 'RIFF');
            word(8, 'WAVEfmt ');
            word(36, 'data');
            for (const [at, value] of [[4, 36 + 2 * rate], [16, 16], [24, rate], [28, 2 * rate], [40, 2 * rate]]) {
                bytes.setUint32(at, value, true);
            }
            for (const [at, value] of [[20, 1], [22, 1], [32, 2], [34, 16]]) bytes.setUint16(at, value, true);
            for (let i = 0; i < rate; i++) bytes.setInt16(44 + 2 * i, 12000 * Math.sin(0.2 * i * (1 + i / rate)), true);
            const old = state.runs.A, record = structuredClone(old.record);
            const cross = record.looks.find((one) => one.kind === 'cross');
            record.axes.push({ id: 9, kind: 'time', count, seconds: seconds / count });
            record.looks = [{ ...cross, columns: record.axes.length - 1, heads: 1 }];
            const rows = record.axes[cross.rows].pieces.length, bits = new Uint16Array(2 * rows * count);
            for (let p = 0; p < 2; p++) for (let r = 0; r < rows; r++) bits[(p * rows + r) * count + 3 * r] = 0x3c00;
            const arrays = new Map([
                ['w0', { shape: [2, rows, count], data: bits }],
                ['sound', { shape: [bytes.byteLength], data: new Uint8Array(bytes.buffer) }],
            ]);
            set({ runs: { A: new RunRecord(record, arrays) }, chosen: { ...state.chosen, A: { look: 0, plane: 0 } } });
        }"""
    )
    page.locator(".sound canvas").wait_for()
    page.locator(".strip .piece").nth(1).hover()
    until(page, "document.querySelector('.readout').textContent.includes('0.15 s 100 %')")
    page.evaluate("document.querySelector('audio').muted = true; document.querySelector('audio').play()")
    until(page, "document.querySelector('audio').currentTime > 0.1")
    assert one.messages == []
    page.context.close()


def test_a_phone_is_wide_enough_and_a_touch_pins(chrome: Any, server: ViewServer) -> None:
    one = Watched.open(chrome, server.address, viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    page = one.ready()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    pieces(page, 0).nth(1).tap()
    page.get_by_role("button", name="Hide it from the model").tap()
    page.locator(".output.isB .facts").wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert one.messages == []
    page.context.close()


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"color_scheme": "dark"},
        {"forced_colors": "active"},
        {"viewport": {"width": 390, "height": 844}},
        {"viewport": {"width": 720, "height": 500}, "device_scale_factor": 2},
        {"reduced_motion": "reduce"},
    ],
    ids=["light", "dark", "forced colours", "phone", "zoom 200 %", "reduced motion"],
)
def test_axe_finds_no_serious_fault(chrome: Any, server: ViewServer, options: dict[str, Any]) -> None:
    if not AXE.is_file():
        if os.environ.get("SACCADE_CI"):
            pytest.fail(f"axe-core is not at {AXE}")
        pytest.skip("axe-core is not here: npm install axe-core, or set SACCADE_AXE to axe.min.js")
    one = Watched.open(chrome, server.address, bypass_csp=True, **options)
    page = one.ready()
    page.add_script_tag(path=str(AXE))
    page.locator(".strip").first.locator(".piece").nth(1).click()
    page.keyboard.press("h")
    page.locator(".output.isB .facts").wait_for()
    for view, panel in (("Matrix", "Step"), ("Lines", "Numbers"), ("Table", "Model")):
        page.get_by_role("button", name=view, exact=True).click()
        page.get_by_role("button", name=panel, exact=True).click()
        page.wait_for_timeout(250)
        found = page.evaluate("axe.run(document, { resultTypes: ['violations'] }).then((result) => result.violations)")
        serious = [
            f"{one['id']}: {one['nodes'][0]['target']} {one['nodes'][0]['failureSummary'][:300]}"
            for one in found
            if one["impact"] in ("serious", "critical")
        ]
        assert serious == []
    page.context.close()
