"""CTC: the loss is PyTorch's, beginnings add up to the probability of texts, and joint search with weight 0 is search
by attention alone."""

from itertools import pairwise, product

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from conftest import MARKS, ancestor, on_plain, random_sequences, read_arrays
from saccade.decode.ctc import CtcColumns, align
from saccade.decode.row import Beam, Greedy, RowRequest
from saccade.decode.search import search
from saccade.runtime.contract import Floats

BLANK, END = 0, 2


def logprobs(positions: int, symbols: int, *, seed: int = 0) -> Floats:
    values = np.random.default_rng(seed).standard_normal((positions, symbols)) * 2
    return values - np.log(np.exp(values).sum(axis=1, keepdims=True))


def whole(logprobs_SV: Floats, text: list[int]) -> float:
    """log p(text), by PyTorch."""
    loss = F.ctc_loss(
        torch.from_numpy(logprobs_SV)[:, None],
        torch.tensor([text]),
        torch.tensor([len(logprobs_SV)]),
        torch.tensor([len(text)]),
        blank=BLANK,
        reduction="sum",
    )
    return -float(loss)


def advance(columns: CtcColumns, text: list[int]) -> tuple[float, float]:
    """The score of a beginning, and of the same text ended, step by step through candidates."""
    prefixes = columns.begin()
    for token in text:
        prefixes.gains(np.array([[END, token]] * len(prefixes.last_K)))
        prefixes.keep(np.array([0, 0]), np.array([1, 1]))
    begun = float(prefixes.score_K[0])
    ended = begun + float(prefixes.gains(np.full((len(prefixes.last_K), 1), END))[0, 0])
    return begun, ended


@pytest.mark.parametrize("text", [[], [3], [3, 3], [3, 4, 4, 3], [5, 3, 5, 5, 4]])
def test_an_ended_text_has_the_probability_that_pytorchs_loss_has(text: list[int]) -> None:
    columns = CtcColumns(logprobs(9, 6), BLANK, END, 0.5)
    assert advance(columns, text)[1] == pytest.approx(whole(columns.logprobs_SV, text), abs=1e-6)


def test_a_beginning_has_the_probability_of_all_texts_that_begin_so() -> None:
    logprobs_SV = logprobs(4, 3)  # blank and two symbols: all texts can be listed
    columns = CtcColumns(logprobs_SV, BLANK, 9, 0.5)
    texts = [list(text) for length in range(5) for text in product((1, 2), repeat=length)]
    possible = [text for text in texts if len(text) + sum(a == b for a, b in pairwise(text)) <= 4]
    chances = {tuple(text): np.exp(whole(logprobs_SV, text)) for text in possible}
    assert sum(chances.values()) == pytest.approx(1)
    for begin in ([1], [2, 1], [1, 1], [2, 1, 2]):
        prefixes = columns.begin()
        for token in begin:
            prefixes.gains(np.array([[token]] * len(prefixes.last_K)))
            prefixes.keep(np.array([0]), np.array([0]))
        expected = sum(chance for text, chance in chances.items() if list(text[: len(begin)]) == begin)
        assert np.exp(prefixes.score_K[0]) == pytest.approx(expected)


def test_the_best_path_goes_through_the_text() -> None:
    logprobs_SV = np.full((8, 5), -6.0)
    path = [0, 3, 3, 0, 3, 4, 4, 0]
    logprobs_SV[np.arange(8), path] = -0.01
    first, after = align(logprobs_SV, [3, 3, 4], BLANK)
    assert (first.tolist(), after.tolist()) == ([1, 4, 5], [3, 5, 7])
    assert [part.tolist() for part in align(logprobs_SV, [], BLANK)] == [[], []]
    first, after = align(logprobs(3, 5), [3, 3, 4, 4], BLANK)  # more than fits
    assert (first[0], after[-1], len(first)) == (0, 3, 4)
    one, past = align(logprobs(40, 6, seed=3), [3, 4, 4, 5], BLANK)
    assert all(one[1:] >= past[:-1])
    assert all(past > one)


def joint(weight: float | None, *, width: int = 3) -> list[list[tuple[list[int], float]]]:
    runtime = on_plain(ancestor("sound, conformer, to transformer"))
    memory = read_arrays(runtime, random_sequences([5, 3, 6]))
    rows = []
    for number, positions in enumerate((6, 4, 7)):
        columns = None if weight is None else CtcColumns(logprobs(positions, 20, seed=number), BLANK, MARKS.end, weight)
        rows.append(RowRequest([MARKS.start], 8, Beam(width, 0.5), columns=columns))
    found = search(runtime.decoder, rows, memory, marks=MARKS)
    return [[(text.tokens, text.score) for text in best] for best in found]


def test_joint_search_with_weight_0_is_search_by_attention() -> None:
    assert joint(0.0) == joint(None)
    assert joint(0.6) != joint(None)


def test_a_texts_joint_search_does_not_depend_on_the_texts_beside_it() -> None:
    runtime = on_plain(ancestor("sound, conformer, to transformer"))
    sources = random_sequences([5, 3, 6])
    for number, positions in enumerate((6, 4, 7)):
        columns = CtcColumns(logprobs(positions, 20, seed=number), BLANK, MARKS.end, 0.6)
        row = RowRequest([MARKS.start], 8, Beam(3, 0.5), columns=columns)
        (alone,) = search(runtime.decoder, [row], read_arrays(runtime, [sources[number]]), marks=MARKS)
        together = joint(0.6)[number]
        assert [text.tokens for text in alone] == [tokens for tokens, _ in together]
        np.testing.assert_allclose([text.score for text in alone], [score for _, score in together], rtol=1e-5)


def test_joint_scores_are_those_of_both_models() -> None:
    """score · penalty = (1 - w) log p_attention + w log p_CTC."""
    runtime = on_plain(ancestor("sound, conformer, to transformer"))
    memory = read_arrays(runtime, random_sequences([5]))
    columns = CtcColumns(logprobs(9, 20), BLANK, MARKS.end, 0.4)
    row = RowRequest([MARKS.start], 8, Beam(4, 0.0), columns=columns)
    (best,) = search(runtime.decoder, [row], memory, marks=MARKS)
    ended = [text for text in best if text.finished]
    assert ended
    for text in ended:
        written = np.array([[MARKS.start, *text.tokens]])
        logits_TV = runtime.decoder.extend(
            written, np.array([written.shape[1]]), runtime.decoder.start(memory), every=True
        )[0][0]
        logits_TV[:, list(MARKS.never_written)] = -np.inf
        shifted = logits_TV.astype(np.float64)
        sure_TV = shifted - np.logaddexp.reduce(shifted, axis=1, keepdims=True)
        attention = sum(sure_TV[place, token] for place, token in enumerate([*text.tokens, MARKS.end]))
        expected = 0.6 * attention + 0.4 * whole(columns.logprobs_SV, text.tokens)
        assert text.score == pytest.approx(expected, rel=1e-4)


def test_only_beams_search_jointly() -> None:
    columns = CtcColumns(logprobs(4, 6), BLANK, END, 0.3)
    with pytest.raises(ValueError, match="joint search is a beam's"):
        RowRequest([1], 5, Greedy(), columns=columns)
