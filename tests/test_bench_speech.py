"""The comparison of listeners: what others write is spelled out as AN4 writes it; texts that are missing are told."""

import pytest
from bench.process import EngineError
from bench.speech import judge, spelled_out, unigrams

KNOWN = {"JANUARY", "ENTER", "SIX", "U", "I"}


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("Enter six.", "ENTER SIX"),
        ("U-M-N, Y H 6", "U M N Y H SIX"),
        ("UMNYH", "U M N Y H"),
        ("January 15, 1963", "JANUARY FIFTEEN ONE NINE SIX THREE"),
        ("40 41 09 7", "FORTY FORTY ONE ZERO NINE SEVEN"),
        ("", ""),
    ],
)
def test_texts_are_spelled_out(written: str, expected: str) -> None:
    assert spelled_out(written, KNOWN) == expected


def test_words_of_a_language_model_are_counted() -> None:
    lines = unigrams(["A B", "A"]).splitlines()
    assert "ngram 1=4" in lines
    assert lines[lines.index("-99\t<s>") + 1 :][:3] == ["-0.3979\t</s>", "-0.3979\ta", "-0.6990\tb"]


def test_errors_are_counted_as_written_and_spelled_out() -> None:
    run = {"engine": "x", "texts": ["UM 6", "yes"]}
    plain, spelled = judge(run, ["U M SIX", "YES"], {*KNOWN, "YES"})
    assert plain.value == 75
    assert spelled.value == 0
    with pytest.raises(EngineError, match="x was given 1 recordings, and wrote 2 texts"):
        judge(run, ["YES"], KNOWN)
