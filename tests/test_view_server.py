"""The page's server without a browser: who is let in, what it answers, that a run is what Python computes."""

import base64
import http.client
import json
import re
from collections.abc import Iterator

import numpy as np
import pytest
from safetensors.numpy import load as load_tensors

import saccade
from browser import serving
from hostile_texts import HOSTILE
from saccade.decode.listen import SearchStep, listening
from saccade.errors import WrongUse
from saccade.view.models import Models
from saccade.view.page import FOLDER, joined_script, one_file
from saccade.view.recording import entropies, planes, thumbnails, to_bytes, top_of
from saccade.view.runs import Ask, look_inside, make_run
from saccade.view.safety import POLICY, Door
from saccade.view.server import ViewServer
from saccade.view.sharing import shared

SENTENCE = "this cat is very large"
CROSS = "decoder.blocks.1.cross_attention"


@pytest.fixture(scope="module")
def server() -> Iterator[ViewServer]:
    with serving("en-es") as one:
        yield one


@pytest.fixture(scope="module")
def models() -> Models:
    return Models(["en-es"])


def post(server: ViewServer, path: str, values: object, **headers: str) -> tuple[int, bytes]:
    line = http.client.HTTPConnection("127.0.0.1", server.door.port, timeout=60)
    body = values if isinstance(values, bytes) else json.dumps(values).encode()
    known = {"X-Saccade-Token": server.door.token, "Host": f"127.0.0.1:{server.door.port}"}
    sent = {name: value for name, value in (known | headers).items() if value != ""}
    line.putrequest("POST", path, skip_host=True)
    for name, value in ({"Content-Length": str(len(body))} | sent).items():
        line.putheader(name, value)
    line.endheaders(body)
    answer = line.getresponse()
    content = answer.read()
    line.close()
    return answer.status, content


def frames(content: bytes) -> list[dict[str, object] | bytes]:
    found: list[dict[str, object] | bytes] = []
    while content:
        kind, length = content[:1], int.from_bytes(content[1:5], "little")
        payload, content = content[5 : 5 + length], content[5 + length :]
        found.append(json.loads(payload) if kind == b"J" else payload)
    return found


def record_of(content: bytes) -> dict[str, object]:
    length = int.from_bytes(content[:8], "little")
    found: dict[str, object] = json.loads(json.loads(content[8 : 8 + length])["__metadata__"]["record"])
    return found


ATTEMPTS: list[tuple[str, dict[str, str]]] = [
    ("no token", {"X-Saccade-Token": ""}),
    ("a wrong token", {"X-Saccade-Token": "x" * 32}),
    ("the beginning of the token", {"X-Saccade-Token": "BEGIN"}),
    ("the token and more", {"X-Saccade-Token": "MORE"}),
    ("the token as a cookie", {"X-Saccade-Token": "", "Cookie": "t=TOKEN"}),
    ("another host", {"Host": "evil.example"}),
    ("another host with the port", {"Host": "evil.example:PORT"}),
    ("a host that begins alike", {"Host": "127.0.0.1.evil.example:PORT"}),
    ("a host that ends alike", {"Host": "evil-127.0.0.1:PORT"}),
    ("localhost of somebody", {"Host": "localhost.evil.example:PORT"}),
    ("no port", {"Host": "127.0.0.1"}),
    ("another port", {"Host": "127.0.0.1:1"}),
    ("a host with a user", {"Host": "127.0.0.1:PORT@evil.example"}),
    ("all addresses", {"Host": "0.0.0.0:PORT"}),
    ("another origin", {"Origin": "http://evil.example"}),
    ("no origin at all", {"Origin": "null"}),
    ("own host, encrypted", {"Origin": "https://127.0.0.1:PORT"}),
    ("own host, another port", {"Origin": "http://127.0.0.1:1"}),
    ("an origin that begins alike", {"Origin": "http://127.0.0.1:PORT.evil.example"}),
    ("a user as the own host", {"Origin": "http://127.0.0.1:PORT@evil.example"}),
    ("a page of another site", {"Sec-Fetch-Site": "cross-site"}),
]


@pytest.mark.parametrize(("name", "headers"), ATTEMPTS, ids=[name for name, _ in ATTEMPTS])
def test_an_attempt_is_refused(server: ViewServer, name: str, headers: dict[str, str]) -> None:
    token, port = server.door.token, str(server.door.port)
    given = {
        key: {"BEGIN": token[:-1], "MORE": token + "x"}.get(value, value.replace("PORT", port).replace("TOKEN", token))
        for key, value in headers.items()
    }
    status, content = post(server, "/models", {}, **given)
    assert status == 403
    assert token.encode() not in content
    assert b"en-es" not in content


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "LOCALHOST", "[::1]"])
def test_the_own_names_are_let_in(server: ViewServer, host: str) -> None:
    own = f"{host}:{server.door.port}"
    status, content = post(server, "/models", {}, Host=own, Origin=f"http://{own.lower()}")
    (found,) = frames(content)
    assert status == 200
    assert isinstance(found, dict)
    assert "en-es" in json.dumps(found["models"])


def test_a_request_without_a_host_is_refused() -> None:
    assert Door(80).complaint({}, asks=False) is not None


@pytest.mark.parametrize(
    ("path", "status"),
    [("/", 200), ("/main.js", 200), ("/vendor/htm.js", 200), ("/../safety.py", 404), ("/vendor/../main.js", 404)]
    + [
        (path, 404)
        for path in ("/page.py", "/%2e%2e/pyproject.toml", "/vendor/", "/main.js/", "/index.html.bak", "//etc/passwd")
    ],
)
def test_files_of_the_page_and_no_others(server: ViewServer, path: str, status: int) -> None:
    line = http.client.HTTPConnection("127.0.0.1", server.door.port, timeout=20)
    line.request("GET", path)
    answer = line.getresponse()
    answer.read()
    assert answer.status == status
    assert answer.headers["Content-Security-Policy"] == POLICY
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert not [name for name in answer.headers if name.lower().startswith("access-control")]


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{", b"null", b'"x"', b"[" * 100_000], ids=["nothing", "list", "half", "null", "text", "deep"]
)
def test_a_request_that_is_no_table_is_refused(server: ViewServer, body: bytes) -> None:
    assert post(server, "/run", body)[0] == 400


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"id": "A"},
        {"id": "../x", "model": "en-es"},
        {"id": "A", "model": "/etc"},
        {"id": "A", "model": "en-es", "text": "x" * 200_000},
        {"id": "A", "model": "en-es", "changes": [{"kind": "delete"}]},
        {"id": "A", "model": "en-es", "text": "hi", "changes": [{"kind": "hide", "memory": "source", "place": -1}]},
        {"id": "A", "model": "en-es", "unknown": 1},
        {"id": "A", "model": "en-es", "beam": 10**6},
    ],
    ids=str,
)
def test_what_cannot_be_meant_is_said_in_one_line(server: ViewServer, values: dict[str, object]) -> None:
    (found,) = [one for one in frames(post(server, "/run", values)[1]) if isinstance(one, dict) and "step" not in one]
    assert isinstance(found["error"], str)
    assert "defect" not in found["error"]
    assert "\n" not in found["error"]


@pytest.mark.parametrize("path", ["/head", "/inside", "/sweep", "/share"])
def test_runs_that_are_not_there(server: ViewServer, path: str) -> None:
    more = {"look": 0, "plane": 0} if path == "/head" else {"look": 0, "head": 0, "row": 0} if path == "/inside" else {}
    asked = (
        {"runs": ["gone"]} if path == "/share" else {"run": "gone", **more} | ({"id": "s"} if path == "/sweep" else {})
    )
    (found,) = frames(post(server, path, asked)[1])
    assert isinstance(found, dict)
    assert "run its input again" in str(found["error"])


def test_a_run_comes_step_by_step_and_is_what_python_computes(server: ViewServer) -> None:
    *steps, content = frames(post(server, "/run", {"id": "A", "model": "en-es", "text": SENTENCE})[1])
    assert isinstance(content, bytes)
    texts = [step["step"]["text"] for step in steps if isinstance(step, dict)]  # type: ignore[index]
    assert texts[:4] == ["", "", "este", "este gato"]
    answer = saccade.load("en-es", "exact")(SENTENCE)
    record, arrays = record_of(content), load_tensors(content)
    run, looks = record["run"], record["looks"]
    assert isinstance(run, dict)
    assert isinstance(looks, list)
    assert (run["text"], run["score"]) == (answer.text, pytest.approx(answer.score, abs=1e-5))
    cross = [number for number, look in enumerate(looks) if look["kind"] == "cross"]
    for layer, number in enumerate(cross):
        expected = answer.looks.cross[layer]
        np.testing.assert_allclose(arrays[f"w{number}"][:-1], expected, atol=1e-3)
        np.testing.assert_allclose(arrays[f"w{number}"][-1], expected.mean(axis=0), atol=1e-3)


def test_a_change_weighs_the_first_text(server: ViewServer) -> None:
    post(server, "/run", {"id": "A2", "model": "en-es", "text": SENTENCE})
    asked = {"id": "B2", "model": "en-es", "text": SENTENCE, "parent": "A2"}
    *_, same = frames(post(server, "/run", asked)[1])
    *_, other = frames(post(server, "/run", asked | {"changes": [{"kind": "hide", "memory": "source", "place": 1}]})[1])
    assert isinstance(same, bytes)
    assert isinstance(other, bytes)
    nothing, hidden = record_of(same)["weighed"], record_of(other)["weighed"]
    assert isinstance(nothing, dict)
    assert isinstance(hidden, dict)
    assert nothing["change"] == 0
    assert hidden["change"] < -3
    assert sum(hidden["after"]) - sum(hidden["before"]) == pytest.approx(hidden["change"])
    worst = min(range(len(hidden["pieces"])), key=lambda i: hidden["after"][i] - hidden["before"][i])
    assert hidden["pieces"][worst].strip() == "gato"


def test_a_sweep_counts_every_head(server: ViewServer) -> None:
    post(server, "/run", {"id": "A3", "model": "en-es-rnn", "text": "good night"})
    first, *rows, last = frames(post(server, "/sweep", {"id": "s1", "run": "A3"})[1])
    assert isinstance(first, dict)
    assert first["total"] == len(rows) == 1
    assert last == {"done": True}


def test_a_sweep_that_was_stopped_ends(server: ViewServer) -> None:
    post(server, "/run", {"id": "A4", "model": "en-es", "text": "good night"})
    post(server, "/cancel", {"id": "s2"})
    assert frames(post(server, "/sweep", {"id": "s2", "run": "A4"})[1])[-1] == {"stopped": True}


def test_a_run_that_was_cancelled_ends(server: ViewServer) -> None:
    post(server, "/cancel", {"id": "gone-1"})
    assert frames(post(server, "/run", {"id": "gone-1", "model": "en-es", "text": SENTENCE})[1]) == [{"stopped": True}]


def test_the_arrays_of_a_head_make_its_weights(models: Models) -> None:
    for model, site in (
        ("en-es", CROSS),
        ("en-es-rnn", "decoder.cross_attention"),
        ("stories", "decoder.blocks.0.self_attention"),
    ):
        run = make_run(models, Ask(id="a", model=model, text=SENTENCE, tokens=6), None, lambda _: None)
        arrays = look_inside(run, site)[0]
        look = next(one for one in run.layers if one.name == site)
        np.testing.assert_allclose(arrays["softmax"], look.weights_NTS, atol=1e-6)
        np.testing.assert_allclose(arrays["softmax"] @ arrays["v"], arrays["context"], atol=1e-4)
        if model == "en-es":
            scores = arrays["q"] @ arrays["k"].swapaxes(1, 2) / np.sqrt(arrays["q"].shape[-1])
            np.testing.assert_allclose(scores, arrays["scores"], atol=1e-4)


def test_steps_tell_what_was_chosen_and_what_else_was_likely(models: Models) -> None:
    run = make_run(models, Ask(id="a", model="en-es", text=SENTENCE), None, lambda _: None)
    (steps,) = run.record["steps"]
    assert "".join(step["chosen"] for step in steps) == " este gato es muy grande(end)"
    for step in steps:
        chances = [np.exp(one["logp"]) for one in step["likely"]]
        assert sum(chances) + step["rest"] == pytest.approx(1, abs=1e-5)
        assert chances == sorted(chances, reverse=True)
    total = sum(one["logp"] for step in steps for one in step["likely"] if one["chosen"])
    assert total == pytest.approx(run.record["run"]["logprob"], abs=1e-4)
    assert [one["chosen"] for one in run.record["finished"][0]].count(True) == 1


def test_a_candidate_is_gone_on_from(models: Models) -> None:
    first = make_run(models, Ask(id="a", model="en-es", text=SENTENCE), None, lambda _: None)
    other = first.record["steps"][0][0]["likely"][1]
    assert not other["chosen"]
    run = make_run(models, Ask(id="c", model="en-es", text=SENTENCE, prefix=other["prefix"]), first, lambda _: None)
    assert run.answer.text.startswith(other["prefix"])
    assert run.answer.text != first.answer.text


def test_listening_changes_nothing_and_hears_every_beginning() -> None:
    translator, heard = saccade.load("en-es", "exact"), []
    with listening(heard.append):
        listened = translator(SENTENCE)
    assert listened.text == translator(SENTENCE).text
    assert all(isinstance(step, SearchStep) and step.beginnings for step in heard)
    assert heard[0].beginnings[0].tokens == []
    assert max(len(step.beginnings) for step in heard) == translator.config.beam


@pytest.mark.parametrize("model", ["stories", "bert-mini", "tagger", "pronouncer", "speller"])
def test_every_bundled_kind_makes_a_record(models: Models, model: str) -> None:
    text = "the cat sat on the [MASK]" if model == "bert-mini" else "teh cat sat"
    run = make_run(models, Ask(id="a", model=model, text=text, tokens=5), None, lambda _: None)
    site = run.layers[0].name
    off = make_run(
        models,
        Ask(id="b", model=model, text=text, tokens=5, changes=({"kind": "layer", "site": site},)),
        run,
        lambda _: None,
    )
    assert record_of(run.to_bytes())["format"] == 1
    assert run.record["architecture"][0]["parts"]
    assert off.record["weighed"]["change"] != 0
    assert any(part["site"] == site for stack in run.record["architecture"] for part in stack["parts"])


def test_two_sentences_are_two_parts(models: Models) -> None:
    run = make_run(models, Ask(id="a", model="en-es", text="Good night. We are eating bread."), None, lambda _: None)
    assert len(run.record["steps"]) == 2
    assert {look["part"] for look in run.record["looks"]} == {0, 1}
    assert all(run.record["steps"])


def test_a_name_that_was_not_offered_is_not_opened(models: Models) -> None:
    for name in ("/etc", "..", "en-es@", "en-es@float", "@int8", "en-ez"):
        with pytest.raises(WrongUse):
            models.open(name)
    assert models.open("en-es@int8").choice.how in ("int8", "exact")


def test_thumbnails_keep_lone_peaks() -> None:
    weights = np.zeros((1, 500, 700), dtype=np.float32)
    weights[0, 333, 444] = 1
    small = thumbnails(planes(weights))
    assert small.shape == (2, 64, 64)
    assert small[0].max() == 255
    assert (small[0] > 0).sum() == 1
    places, values = top_of(planes(weights))
    assert places[0, 333][values[0, 333] == 1].tolist() == [444]


def test_entropy_is_0_for_one_thing_and_1_for_all_alike() -> None:
    one, all_alike = np.eye(4)[None], np.full((1, 4, 4), 0.25)
    assert entropies(np.concatenate([one, all_alike])).tolist() == pytest.approx([0, 1])


def test_what_is_too_large_for_a_file_is_thinned_and_said(models: Models, monkeypatch: pytest.MonkeyPatch) -> None:
    run = make_run(models, Ask(id="A", model="en-es", text=SENTENCE), None, lambda _: None)
    monkeypatch.setattr("saccade.view.sharing.WHOLE", 1000)
    monkeypatch.setattr("saccade.view.sharing.MOST", 3000)
    content, left_out = shared([run])
    stored = [look["stored"] for look in record_of(content)["runs"][0]["looks"]]  # type: ignore[index]
    assert {"top", "thumb"} <= set(stored)
    assert "16 largest" in left_out
    assert "small pictures" in left_out


def test_the_files_of_the_page_are_small_plain_and_make_no_markup() -> None:
    files = [path for path in FOLDER.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) <= 400_000
    writing = ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "dangerouslySet", "eval(", "srcdoc")
    writing += ("new Function", "DOMParser", "createContextualFragment", "setHTML")
    names: dict[str, list[str]] = {}
    for path in files:
        if path.suffix != ".js" or path.parent.name == "vendor":
            continue
        source = path.read_text("utf-8")
        assert not [word for word in writing if word in source], path.name
        assert "http://" not in source.replace("http://www.w3.org/2000/svg", ""), path.name
        assert "https://" not in source, path.name
        for name in re.findall(r"^(?:export )?(?:async )?(?:function\*?|const|let|class) (\w+)", source, re.MULTILINE):
            names.setdefault(name, []).append(path.name)
    assert {name: where for name, where in names.items() if len(where) > 1} == {}, "in one file they would be one"


def test_all_modules_are_joined() -> None:
    script = joined_script()
    for path in FOLDER.glob("*.js"):
        assert path.read_text("utf-8").splitlines()[0] in script, path.name
    assert not re.findall(r"^(?:import|export)\b", script, re.MULTILINE)


@pytest.mark.parametrize("title", HOSTILE[:32])
def test_a_title_cannot_leave_its_place(title: str) -> None:
    page = one_file(to_bytes({"runs": []}, {}), title)
    assert page.count("<script") == joined_script().count("<script") + 2
    assert page.count("</script") == 2
    assert base64.b64decode(page.split('id="looks">')[1].split("<")[0])
