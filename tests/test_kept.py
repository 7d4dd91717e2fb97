"""Folders of format 1, kept as they were written, still load and answer what they answered then."""

import json
from pathlib import Path
from typing import Any

import pytest

import saccade
from saccade.folder import FORMAT, read_config

KEPT = sorted(path for path in (Path(__file__).parent / "kept").iterdir() if path.is_dir())


def near(one: Any, other: Any) -> bool:
    if isinstance(one, dict):  # answers may have gained fields since
        return one.keys() >= other.keys() and all(near(one[key], other[key]) for key in other)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(near, one, other))
    return one == pytest.approx(other, abs=1e-4) if isinstance(one, float) else bool(one == other)


@pytest.mark.parametrize("path", KEPT, ids=lambda path: path.name)
def test_a_folder_of_format_1_answers_as_it_did(path: Path) -> None:
    assert read_config(path).format == 1 < FORMAT
    kept = json.loads((path / "answers.json").read_text(encoding="utf-8"))
    pipeline = saccade.load(path, "exact")
    for given, expected in zip(kept["inputs"], kept["answers"], strict=True):
        assert near(pipeline(given, **kept["options"]).record(), expected)


def test_every_family_is_kept() -> None:
    kinds = {json.dumps(read_config(path).model.get("kind")) for path in KEPT}
    assert kinds == {'"encoder-decoder"', '"gpt"', '"bert"', '"xlnet"'}
    assert len(KEPT) == 10
