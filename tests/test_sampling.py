"""Drawing tokens: the filters are their definitions, draws follow softmax, and no text depends on its neighbours."""

import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

from conftest import MARKS, random_sequences
from saccade import native
from saccade.decode.filters import keep_likeliest, keep_nucleus, penalise
from saccade.decode.hypothesis import NEVER
from saccade.decode.row import RowRequest, Sample
from saccade.decode.sample import Drawing, Draws, draw_tokens
from saccade.decode.session import Session
from saccade.errors import WrongUse
from saccade.models.answering import TorchDecoder, language_runtime
from saccade.models.gpt import LanguageModel
from saccade.runtime.contract import DecoderLike, Floats
from tiny import CONTEXT, GPTS, tiny_gpt

BEGIN, END, PAD = MARKS.begin, MARKS.end, MARKS.pad

# Logits that differ by less than their probabilities can tell would be ties, and which of those is kept is open.
LOGITS = st.lists(st.integers(-8000, 8000).map(lambda n: n / 1000), min_size=1, max_size=12)


@pytest.fixture(autouse=True)
def _no_gradients() -> Iterator[None]:
    with torch.inference_mode():
        yield


def kept(logits_BV: Floats) -> list[set[int]]:
    return [set(np.flatnonzero(np.isfinite(row)).tolist()) for row in logits_BV]


def row_of(logits: list[float]) -> Floats:
    return np.array([logits])


def softmax(logits_BV: Floats) -> Floats:
    """PyTorch's, so that the filters' own is tested too."""
    return torch.from_numpy(logits_BV).softmax(-1).numpy()


def normal(rows: int, count: int) -> Floats:
    return np.random.default_rng(0).standard_normal((rows, count), dtype=np.float32)


# Top-k


@given(LOGITS, st.integers(1, 15))
def test_top_k_keeps_the_k_likeliest(logits: list[float], count: int) -> None:
    (found,) = kept(keep_likeliest(row_of(logits), count))
    least = sorted(logits, reverse=True)[: min(count, len(logits))][-1]
    assert found == {i for i, logit in enumerate(logits) if logit >= least}, "and what is as likely as the last"
    if len(set(logits)) == len(logits):
        assert len(found) == min(count, len(logits))


def test_top_k_changes_no_logit_it_keeps() -> None:
    logits_BV = normal(3, 10)
    found_BV = keep_likeliest(logits_BV, 4)
    assert np.array_equal(found_BV[found_BV > NEVER], logits_BV[found_BV > NEVER])
    assert [len(row) for row in kept(found_BV)] == [4, 4, 4]


def test_top_k_never_brings_back_what_is_forbidden() -> None:
    assert kept(keep_likeliest(row_of([1.0, NEVER, NEVER, 0.0]), 3)) == [{0, 3}]


# Top-p


def smallest_set(logits: list[float], share: float) -> set[int]:
    """The definition, token by token: likeliest first, until the share is held."""
    shifted = np.exp(np.array(logits) - max(logits))
    probabilities = shifted / shifted.sum()
    chosen: set[int] = set()
    for token in np.argsort(-probabilities, kind="stable"):
        if sum(probabilities[i] for i in chosen) >= share - 1e-12:
            break
        chosen.add(int(token))
    return chosen


@given(LOGITS, st.floats(0.01, 0.99))
@example([0.0, 0.0, 0.0, 0.0], 0.5)
@example([math.log(0.5), math.log(0.3), math.log(0.2)], 0.79)
@example([math.log(0.5), math.log(0.3), math.log(0.2)], 0.81)
def test_top_p_keeps_the_fewest_tokens_that_hold_the_share(logits: list[float], share: float) -> None:
    (found,) = kept(keep_nucleus(row_of(logits), share))
    probabilities = softmax(row_of(logits))[0]
    held = sorted((float(probabilities[i]) for i in found), reverse=True)
    assert found == smallest_set(logits, share) or sum(held) == pytest.approx(share, abs=1e-9)
    assert sum(held) >= share - 1e-9
    assert sum(held[:-1]) < share + 1e-9, "without the last of them it would not be enough"


@given(st.lists(st.floats(-60, 8), min_size=1, max_size=12))
def test_all_of_the_probability_is_all_tokens(logits: list[float]) -> None:
    assert np.array_equal(keep_nucleus(row_of(logits), 1.0), row_of(logits))


def test_a_tiny_share_is_the_likeliest_token() -> None:
    assert kept(keep_nucleus(np.array([[0.0, 3.0, 1.0], [2.0, 0.0, 1.0]]), 1e-9)) == [{1}, {0}]


def test_rows_are_filtered_each_alone() -> None:
    logits_BV = 3 * normal(6, 20)
    together = keep_nucleus(logits_BV, 0.8)
    for row in range(6):
        assert np.array_equal(together[row : row + 1], keep_nucleus(logits_BV[row : row + 1], 0.8))
    assert len({len(row) for row in kept(together)}) > 1


# Repetition


@given(LOGITS, st.sets(st.integers(0, 11)), st.floats(0.2, 5))
def test_the_penalty_divides_what_is_positive_and_multiplies_what_is_negative(
    logits: list[float], seen: set[int], penalty: float
) -> None:
    seen = {token for token in seen if token < len(logits)}
    (found,) = penalise(row_of(logits), [seen], penalty).tolist()
    expected = [
        logit if token not in seen else logit / penalty if logit > 0 else logit * penalty
        for token, logit in enumerate(logits)
    ]
    assert found == pytest.approx(expected)


def test_the_penalty_leaves_its_input_alone_and_what_is_forbidden_forbidden() -> None:
    logits_BV = np.array([[1.0, NEVER, -1.0]])
    found_BV = penalise(logits_BV, [{0, 1, 2}], 2.0)
    assert logits_BV.tolist() == [[1.0, NEVER, -1.0]]
    assert found_BV.tolist() == [[0.5, NEVER, -2.0]]


def test_what_stands_in_the_prefix_or_was_drawn_is_penalised() -> None:
    """The likeliest token is taken until its penalty puts another before it."""
    logits_BV = np.array([[0.0, 0.0, 0.0, 4.0, 3.0, 2.5], [0.0, 0.0, 0.0, 4.0, 3.0, 2.5]])
    draws = [Draws(0, 0), Draws(0, 1, [3])]
    drawn = [draw_tokens(logits_BV.copy(), Drawing(repetition=2.0), draws)[1].tolist() for _ in range(3)]
    # The second text has seen 3 already: it is one ahead of the first.
    assert drawn == [[3, 4], [4, 5], [5, 3]]
    none = [Draws(0, 0, [3])]
    assert [draw_tokens(logits_BV[:1], Drawing(), none)[1].item() for _ in range(3)] == [3, 3, 3]


# Draws


def draws(logits: list[float], drawing: Drawing, count: int, texts: int = 50) -> np.ndarray:
    """How often each token was drawn."""
    rows = [Draws(drawing.seed, number) for number in range(texts)]
    logits_BV = np.tile(np.array(logits, dtype=np.float32), (texts, 1))
    drawn = np.concatenate([draw_tokens(logits_BV, drawing, rows)[1] for _ in range(count // texts)])
    return np.bincount(drawn, minlength=len(logits))


SHAPE = [0.3, -1.0, NEVER, 2.0, 1.1, -4.0, 0.0]


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("filters", [{}, {"top_k": 3}, {"top_p": 0.8}, {"top_k": 4, "top_p": 0.9}], ids=str)
def test_tokens_are_drawn_as_often_as_softmax_says(temperature: float, filters: dict[str, float]) -> None:
    count = 4000
    filtered = row_of(SHAPE) / temperature
    if "top_k" in filters:
        filtered = keep_likeliest(filtered, int(filters["top_k"]))
    if "top_p" in filters:
        filtered = keep_nucleus(filtered, filters["top_p"])
    expected = count * softmax(filtered)[0]
    found = draws(SHAPE, Drawing(temperature=temperature, seed=3, **filters), count)
    possible = expected > 0
    assert not found[~possible].any(), "what is impossible is never drawn"
    # The mean of chi-square is its degrees of freedom, its variance twice that: five standard deviations.
    freedom = possible.sum() - 1
    chi_square = ((found - expected)[possible] ** 2 / expected[possible]).sum()
    assert chi_square < freedom + 5 * math.sqrt(2 * freedom) + 1


def test_filters_follow_one_another() -> None:
    """Top-p takes its share of what the temperature and top-k have left."""
    logits = [math.log(share) for share in (0.4, 0.3, 0.2, 0.1)]
    assert set(np.flatnonzero(draws(logits, Drawing(1.0, top_k=2, top_p=0.5), 1000))) == {0}
    assert set(np.flatnonzero(draws(logits, Drawing(1.0, top_p=0.5), 1000))) == {0, 1}
    assert set(np.flatnonzero(draws(logits, Drawing(0.2, top_p=0.6), 1000))) == {0}


@pytest.mark.parametrize("temperature", [None, 1e-3, 1e-9, 1e-300, 5e-324])
def test_as_the_temperature_falls_the_likeliest_is_drawn(temperature: float | None) -> None:
    logits_BV = 5 * normal(40, 30)
    _, tokens_B = draw_tokens(logits_BV, Drawing(temperature), [Draws(0, number) for number in range(40)])
    assert tokens_B.tolist() == logits_BV.argmax(axis=1).tolist()


def test_a_high_temperature_makes_all_alike_but_what_is_forbidden() -> None:
    found = draws(SHAPE, Drawing(1e12), 4000)
    assert found[2] == 0
    assert (np.abs(np.delete(found, 2) - 4000 / 6) < 5 * math.sqrt(4000 / 6)).all()


@pytest.mark.parametrize(
    "drawing",
    [Drawing(), Drawing(0.5), Drawing(2.0, top_k=3), Drawing(1.0, top_p=0.5), Drawing(1.0, repetition=3.0)],
    ids=str,
)
def test_log_probabilities_are_the_models_own(drawing: Drawing) -> None:
    logits_BV = 2 * normal(30, 12)
    before_BV = logits_BV.copy()
    logprobs_B, tokens_B = draw_tokens(logits_BV, drawing, [Draws(0, number, [3, 4]) for number in range(30)])
    assert np.array_equal(logits_BV, before_BV)
    expected_B = torch.from_numpy(before_BV).log_softmax(-1)[torch.arange(30), torch.from_numpy(tokens_B)]
    torch.testing.assert_close(torch.from_numpy(logprobs_B), expected_B, atol=1e-5, rtol=1e-5)


def test_successive_draws_of_one_text_are_independent() -> None:
    draws, equal_BV = Draws(0, 0), np.zeros((1, 2), dtype=np.float32)
    drawn = [draw_tokens(equal_BV, Drawing(1.0), [draws])[1].item() for _ in range(2000)]
    repeats = sum(one == other for one, other in itertools.pairwise(drawn))
    assert abs(repeats - 1000) < 5 * math.sqrt(500)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"temperature": 0.0}, "temperature must be above 0, not 0"),
        ({"temperature": -1.0}, "not -1"),
        ({"temperature": math.nan}, "nan"),
        ({"temperature": math.inf}, "inf"),
        ({"top_k": 0}, "top-k must be at least 1, not 0"),
        ({"top_p": 0.0}, "top-p must be above 0 and at most 1, not 0"),
        ({"top_p": 1.5}, "1.5"),
        ({"top_p": math.nan}, "nan"),
        ({"repetition": 0.0}, "repetition .* not 0"),
        ({"repetition": math.nan}, "nan"),
        ({"repetition": 11.0}, "11"),
        ({"seed": -1}, "seed .* not -1"),
        ({"seed": 2**63}, "seed"),
    ],
    ids=str,
)
def test_numbers_that_mean_nothing_are_refused(options: dict[str, float], words: str) -> None:
    with pytest.raises(WrongUse, match=words):
        Drawing(**options)


# Writing on


def by_pytorch(model: LanguageModel) -> DecoderLike[Any]:
    return TorchDecoder(model.decoder)


def on_plain(model: LanguageModel) -> DecoderLike[Any]:
    return language_runtime(model, "exact").decoder


def on_kernels(model: LanguageModel) -> DecoderLike[Any]:
    if native.kernels() is None:
        pytest.skip(f"no C kernels: {native.why_not()}")
    runtime = language_runtime(model, "int16")
    assert runtime.choice.engine == "kernels"
    return runtime.decoder


on_both = pytest.mark.parametrize("on", [by_pytorch, on_plain])
On = Callable[[LanguageModel], DecoderLike[Any]]


def write(
    decoder: DecoderLike[Any],
    texts: list[list[int]],
    drawing: Drawing,
    *,
    numbers: list[int] | None = None,
    lengths: list[int] | None = None,
    context: int = CONTEXT,
) -> list[list[tuple[int, float]]]:
    """What follows each text, up to its end or its own length, token by token with its log-probability."""
    session = Session(decoder, MARKS, context=context)
    limits = lengths or [3 * CONTEXT] * len(texts)
    strategies = [Sample(drawing, number) for number in numbers or range(len(texts))]
    rows = session.add_all([RowRequest(*row) for row in zip(texts, limits, strategies, strict=True)])
    found: list[list[tuple[int, float]]] = [[] for _ in texts]
    while session:
        before = [row.logprob for row in rows]
        going = {row for row in rows if not row.over}
        assert set(session.step()) == going
        for place, row in enumerate(rows):
            if row in going:
                token = END if row.finished else row.tokens[-1]
                found[place].append((token, row.logprob - before[place]))
    assert all(row.over for row in rows)
    return found


def tokens_of(written: list[tuple[int, float]]) -> list[int]:
    return [token for token, _ in written]


def by_a_plain_loop(model: LanguageModel, text: list[int], count: int, context: int) -> list[tuple[int, float]]:
    """The likeliest token, again and again; a text that no longer fits goes on with half a context."""
    window, found = list(text), []
    if len(window) > context:
        window = window[-max(1, context // 2) :]
    for _ in range(count):
        logits_V = model(torch.tensor([window]))[0, -1]
        logits_V[list(MARKS.never_written)] = NEVER
        logprobs_V = logits_V.log_softmax(-1)
        token = int(logprobs_V.argmax())
        found.append((token, float(logprobs_V[token])))
        window.append(token)
        if len(window) > context:
            window = window[-max(1, context // 2) :]
    return found


@on_both
@pytest.mark.parametrize("name", GPTS)
def test_the_likeliest_text_is_that_of_a_plain_loop_past_the_context_too(name: str, on: On) -> None:
    model = tiny_gpt(name)
    model.decoder.head.weight[END] = 0
    texts = [[BEGIN, *text] for text in random_sequences([1, CONTEXT - 2, 7, CONTEXT + 9])]
    lengths = [2 * CONTEXT, 5, 30, 40]
    for text, count, written in zip(texts, lengths, write(on(model), texts, Drawing(), lengths=lengths), strict=True):
        expected = by_a_plain_loop(model, text, len(written), CONTEXT)
        assert tokens_of(written) == tokens_of(expected)
        assert [logprob for _, logprob in written] == pytest.approx([logprob for _, logprob in expected], abs=1e-4)
        assert len(written) == count or written[-1][0] == END


@on_both
@pytest.mark.parametrize("context", [1, 2, 3])
def test_the_smallest_contexts_are_enough(context: int, on: On) -> None:
    model = tiny_gpt(context=context)
    (written,) = write(on(model), [[BEGIN, 5, 6, 7]], Drawing(), lengths=[9], context=context)
    assert tokens_of(written) == tokens_of(by_a_plain_loop(model, [BEGIN, 5, 6, 7], len(written), context))


PROMPTS = [
    [BEGIN, *text] for text in random_sequences([n % 11 for n in range(30)] + [CONTEXT - 1, CONTEXT + 3], seed=2)
]


def drawn_alone_and_together(decoder: DecoderLike[Any]) -> tuple[list[bool], float]:
    """Whether each text of a batch, in either order, is the one drawn alone; the largest difference where it is."""
    drawing = Drawing(1.0, top_k=20, seed=4)
    together = write(decoder, PROMPTS, drawing)
    backwards = write(decoder, PROMPTS[::-1], drawing, numbers=list(range(len(PROMPTS)))[::-1])[::-1]
    lengths = {len(text) for text in together}
    assert len(lengths) > 10, "texts of many lengths, so that they leave one by one"
    assert max(lengths) > CONTEXT, "and some go on past the context"
    same, furthest = [], 0.0
    for number, prompt in enumerate(PROMPTS):
        (alone,) = write(decoder, [prompt], drawing, numbers=[number])
        for other in (together[number], backwards[number]):
            same.append(tokens_of(other) == tokens_of(alone))
            if same[-1]:
                furthest = max([furthest, *(abs(x - y) for (_, x), (_, y) in zip(other, alone, strict=True))])
    return same, furthest


def ending(name: str) -> LanguageModel:
    """A model that ends some texts early and some late."""
    model = tiny_gpt(name, vocabulary=30)
    model.decoder.head.weight[END].mul_(1.4)
    return model


@on_both
@pytest.mark.parametrize("name", ["gpt-2", "rotary", "later turns"])
def test_a_seed_draws_the_same_text_whatever_the_batch(name: str, on: On) -> None:
    same, furthest = drawn_alone_and_together(on(ending(name)))
    assert all(same)
    assert furthest < 1e-4


def test_on_the_kernels_it_is_the_same_text_to_the_last_bit() -> None:
    same, furthest = drawn_alone_and_together(on_kernels(ending("gpt-2")))
    assert all(same)
    assert furthest == 0


@on_both
def test_another_seed_or_another_place_draws_another_text(on: On) -> None:
    decoder = on(tiny_gpt())

    def drawn(seed: int, number: int) -> tuple[int, ...]:
        (text,) = write(decoder, [[BEGIN, 5]], Drawing(2.0, seed=seed), numbers=[number], lengths=[12])
        return tuple(tokens_of(text))

    assert drawn(0, 0) == drawn(0, 0)
    assert len({drawn(seed, 0) for seed in range(10)}) > 8
    assert len({drawn(0, number) for number in range(1, 11)}) > 8


@on_both
def test_marks_are_never_written(on: On) -> None:
    model = tiny_gpt(tie=False)
    model.decoder.head.weight[[PAD, BEGIN]] = 50 * model.decoder.head.weight[[5, 6]]
    for text in write(on(model), PROMPTS, Drawing(5.0)):
        assert not {PAD, BEGIN} & set(tokens_of(text))
        assert all(math.isfinite(logprob) for _, logprob in text)


def test_texts_that_are_dropped_from_the_start_are_not_written() -> None:
    session = Session(TorchDecoder(tiny_gpt().decoder), MARKS, context=8)
    for text in session.add_all([RowRequest([3], 5), RowRequest([4], 5)]):
        session.drop(text)
    assert not session
    assert session.step() == []
