"""BLEU and chrF: an interval for every set, and words found as the script asks for."""

from pathlib import Path

import pytest

from saccade.evaluate.metrics import bleu, chrf, tokenizer_of
from tiny import ask

JAPANESE = ["猫はとても大きいです。", "今日は良い天気ですね。", "カメラを忘れました。", "東京へ行きたい。"]
CHINESE = ["这只猫很大。", "今天天气很好。", "我忘了带相机。"]


@pytest.mark.parametrize("score", [bleu, chrf])
@pytest.mark.parametrize("outputs", [["qqq", "el gato"], ["qqq", "ooo"], ["", ""], ["ZZZ", "el gato es grande"]])
def test_resamples_without_any_overlap_still_give_an_interval(score: object, outputs: list[str]) -> None:
    found = score(outputs, [["ZZZ"], ["el gato es grande"]], bootstrap=200)  # type: ignore[operator]
    assert found.interval is not None
    assert 0 <= found.interval < 50.1
    assert found.value == score(outputs, [["ZZZ"], ["el gato es grande"]]).value  # type: ignore[operator]


def test_a_poor_translation_is_evaluated(tmp_path: Path) -> None:
    file = tmp_path / "e.tsv"
    file.write_text("qqq\tZZZ\nthe cat is large\tel gato es grande\n", encoding="utf-8")
    said = ask("evaluate", "en-es", file)
    assert said.code == 0, said.err
    assert "chrF" in said.out


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["el gato es grande", "ça va ?"], {"13a"}),
        (["Кошка большая.", "القط كبير", "γάτα", "बिल्ली बड़ी है"], {"13a"}),
        (["1 2 3 !"], {"13a"}),
        ([], {"13a"}),
        (CHINESE, {"zh"}),
        (["他说“カメラ”这个词，我们都不懂。", *CHINESE], {"zh"}),
        (["我用 Python 写了一个很小的程序，很好用。"], {"zh"}),
        (JAPANESE, {"char", "ja-mecab"}),
        (["고양이가 아주 큽니다.", "오늘은 날씨가 좋네요."], {"char", "ko-mecab"}),
        (["แมวตัวใหญ่มาก"], {"char"}),
    ],
)
def test_the_script_chooses_the_tokenizer(texts: list[str], expected: set[str]) -> None:
    assert tokenizer_of(texts) in expected


@pytest.mark.parametrize("texts", [CHINESE, JAPANESE])
def test_one_wrong_character_does_not_make_a_whole_sentence_wrong(texts: list[str]) -> None:
    nearly = [text.replace(text[2], "x") for text in texts]
    found = bleu(nearly, [[text] for text in texts], bootstrap=10)
    assert f"tok:{tokenizer_of(texts)}" in found.signature
    assert found.value > 20
    assert bleu(texts, [[text] for text in texts]).value == pytest.approx(100)
