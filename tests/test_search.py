"""Search: greedy, beam and sampling find what they promise, and a sentence's answer does not depend on its batch."""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest
import torch
from torch import Tensor

from conftest import (
    FIRST_SYMBOL,
    MARKS,
    ancestor,
    by_pytorch,
    on_plain,
    random_sequences,
    read,
    read_arrays,
    small_model,
)
from saccade.decode.hypothesis import Hypothesis, length_penalty
from saccade.decode.row import Beam, Greedy, RowRequest, Strategy
from saccade.decode.sample import Drawing, Draws, draw_tokens
from saccade.decode.search import SearchConfig, search
from saccade.errors import WrongUse
from saccade.models.encdec import EncoderDecoder
from saccade.pipelines.opening import SequenceModel

BEGIN, END, PAD = MARKS.begin, MARKS.end, MARKS.pad
NEVER_WRITTEN = list(MARKS.never_written)

LIMIT = 12


@pytest.fixture(autouse=True)
def _no_gradients() -> object:
    with torch.inference_mode():
        yield


@dataclass(frozen=True)
class Answering:
    """A model, and what its searches run on."""

    model: EncoderDecoder
    on: Callable[[EncoderDecoder], SequenceModel]


Wild = Callable[..., Answering]


WILD = {
    "transformer": (4, 1.5),
    "dot": (6, 2.0),
    "scaled dot, fed": (4, 1.5),
    "lstm": (4, 1.0),
    "convolution": (2, 1.2),
}
"""How much larger the weights are, and those of the end, so that texts end, some early and some late."""


ON: dict[str, Callable[[EncoderDecoder], SequenceModel]] = {"PyTorch": by_pytorch, "plain": on_plain}
UNKNOWN_TO_PLAIN = {"convolution"}
RUNS = [(family, on) for on in ON for family in WILD if on == "PyTorch" or family not in UNKNOWN_TO_PLAIN]


@pytest.fixture(params=RUNS, ids=" on ".join)
def wild_model(request: pytest.FixtureRequest) -> Wild:
    """Makes a random model that is sure of itself here and in doubt there.

    Fresh weights repeat one token for ever; larger ones make a model whose next token hangs on all that came before.
    """

    family, on = request.param

    def make(*, vocabulary: int = 20, seed: int = 0) -> Answering:
        larger, end = WILD[family]
        build = small_model if family == "transformer" else partial(ancestor, family)
        model = build(vocabulary=vocabulary, seed=seed)
        for name, weight in model.decoder.named_parameters():
            if weight.ndim == 2 and not name.startswith(("embed.", "head.")):
                weight.mul_(larger)
        model.decoder.head.weight[END].mul_(end)
        return Answering(model, ON[on])

    return make


def logprobs_TV(wild: Answering, source: list[int], tokens: list[int]) -> Tensor:
    """[T+1, V]: log-probabilities of every token after every beginning, teacher forced, as if marks did not exist."""
    model = wild.model
    logits_BTV: Tensor = model.decoder(torch.tensor([[BEGIN, *tokens]]), read(model, [source]))
    logits_BTV[:, :, NEVER_WRITTEN] = float("-inf")
    return logits_BTV[0].log_softmax(-1)


def logprob_of(wild: Answering, source: list[int], text: Hypothesis, prefix: int = 0) -> float:
    """The log-probability of a text after its prefix, from one teacher-forced pass."""
    found_TV = logprobs_TV(wild, source, text.tokens)
    written = text.tokens[prefix:] + ([END] if text.finished else [])
    return float(sum(found_TV[prefix + t, token] for t, token in enumerate(written)))


def find(
    wild: Answering,
    sources: list[list[int]],
    config: SearchConfig,
    *,
    prefixes: list[list[int]] | None = None,
    limits: list[int] | None = None,
    numbers: list[int] | None = None,
) -> list[list[Hypothesis]]:
    strategies = [config.strategy(number) for number in numbers or range(len(sources))]
    return find_by(wild, sources, strategies, prefixes or [[] for _ in sources], limits or [LIMIT] * len(sources))


def find_by(
    wild: Answering,
    sources: list[list[int]],
    strategies: list[Strategy],
    prefixes: list[list[int]],
    limits: list[int],
) -> list[list[Hypothesis]]:
    model = wild.on(wild.model)
    requests = [
        RowRequest([MARKS.start], limit, strategy, prefix)
        for limit, strategy, prefix in zip(limits, strategies, prefixes, strict=True)
    ]
    return search(model.decoder, requests, read_arrays(model, sources), marks=MARKS)


def assert_same_text(one: Hypothesis, other: Hypothesis) -> None:
    assert one.tokens == other.tokens
    assert one.finished == other.finished
    assert one.logprob == pytest.approx(other.logprob, abs=1e-4)
    assert one.score == pytest.approx(other.score, abs=1e-4)


MIXED = random_sequences([1 + n % 9 for n in range(200)], seed=3)


def test_the_random_models_of_this_file_write_varied_texts(wild_model: Wild) -> None:
    # Were all texts alike, or all cut off, the equalities below would hold for nothing.
    texts = [texts[0] for texts in find(wild_model(), MIXED, SearchConfig(beam=1))]
    assert len({tuple(text.tokens) for text in texts}) > 60
    assert len({len(text.tokens) for text in texts}) >= LIMIT // 2
    assert 0.1 < np.mean([text.finished for text in texts]) < 0.95


# Greedy and beam


@pytest.mark.parametrize("alpha", [0.0, 0.6])
def test_a_beam_of_one_is_greedy(wild_model: Wild, alpha: float) -> None:
    wild, sources = wild_model(), MIXED[:60]
    prefixes = [source[: n % 3] for n, source in enumerate(sources)]
    limits = [1 + n % LIMIT for n in range(60)]
    one = find_by(wild, sources, [Greedy(alpha)] * 60, prefixes, limits)
    other = find_by(wild, sources, [Beam(1, alpha)] * 60, prefixes, limits)
    for (text,), texts in zip(one, other, strict=True):
        assert len(texts) == 1
        assert_same_text(text, texts[0])


def test_greedy_takes_the_likeliest_token_at_every_step(wild_model: Wild) -> None:
    wild, sources = wild_model(), MIXED[:40]
    for source, (text,) in zip(sources, find(wild, sources, SearchConfig(beam=1)), strict=True):
        written = text.tokens + ([END] if text.finished else [])
        assert logprobs_TV(wild, source, text.tokens).argmax(-1)[: len(written)].tolist() == written


@pytest.mark.parametrize("config", [SearchConfig(beam=1), SearchConfig(beam=5), SearchConfig(temperature=0.8)], ids=str)
def test_a_texts_log_probability_is_the_sum_of_its_teacher_forced_steps(wild_model: Wild, config: SearchConfig) -> None:
    wild, sources = wild_model(), MIXED[:40]
    prefixes = [source[: n % 4] for n, source in enumerate(sources)]
    for source, prefix, texts in zip(sources, prefixes, find(wild, sources, config, prefixes=prefixes), strict=True):
        for text in texts:
            assert text.logprob == pytest.approx(logprob_of(wild, source, text, len(prefix)), abs=1e-4)
            length = len(text.tokens) - len(prefix) + text.finished
            assert text.score == pytest.approx(text.logprob / length_penalty(length, config.alpha), abs=1e-6)


def test_length_penalty_is_the_formula_of_wu() -> None:
    assert length_penalty(1, 0.6) == 1
    assert length_penalty(7, 1.0) == 2
    assert length_penalty(40, 0.0) == 1
    assert length_penalty(19, 0.5) == 2


@pytest.mark.parametrize("alpha", [0.0, 0.6])
def test_beam_finds_better_texts_than_greedy(wild_model: Wild, alpha: float) -> None:
    wild = wild_model()
    means = [
        np.mean([texts[0].score for texts in find(wild, MIXED, SearchConfig(beam=width, alpha=alpha))])
        for width in (1, 2, 5)
    ]
    assert means[0] < means[1] < means[2]


def every_text(wild: Answering, source: list[int], vocabulary: int, limit: int, alpha: float) -> list[Hypothesis]:
    """All texts of at most `limit` tokens, the end mark included, and those cut off there, best first."""
    texts = []
    model, memory = wild.model, read(wild.model, [source])
    for length in range(limit + 1):
        all_tokens = [list(tokens) for tokens in itertools.product(range(FIRST_SYMBOL, vocabulary), repeat=length)]
        logits_BTV = model.decoder(torch.tensor([[BEGIN, *tokens] for tokens in all_tokens]), memory)
        logits_BTV[:, :, NEVER_WRITTEN] = float("-inf")
        finished = length < limit
        for tokens, found_TV in zip(all_tokens, logits_BTV.log_softmax(-1), strict=True):
            written = [*tokens, END] if finished else tokens
            logprob = float(sum(found_TV[t, token] for t, token in enumerate(written)))
            texts.append(Hypothesis(tokens, logprob, logprob / length_penalty(len(written), alpha), finished))
    return sorted(texts, key=lambda text: -text.score)


@pytest.mark.parametrize("alpha", [0.0, 0.6, 2.0])
def test_a_beam_wide_enough_is_an_exhaustive_search(wild_model: Wild, alpha: float) -> None:
    surprises = 0
    for seed in range(4):
        wild = wild_model(vocabulary=6, seed=seed)
        sources = random_sequences([2, 5, 3], vocabulary=6, seed=seed)
        greedy_texts = find(wild, sources, SearchConfig(beam=1, alpha=alpha), limits=[4] * 3)
        all_texts = find(wild, sources, SearchConfig(beam=130, alpha=alpha), limits=[4] * 3)
        for source, texts, (greedy_text,) in zip(sources, all_texts, greedy_texts, strict=True):
            expected = every_text(wild, source, vocabulary=6, limit=4, alpha=alpha)
            # 3 symbols: 1 + 3 + 9 + 27 texts that end, 81 cut off.
            assert len(texts) == len(expected) == 121
            for found, other in zip(texts, expected, strict=True):
                assert_same_text(found, other)
            surprises += texts[0].tokens != greedy_text.tokens
    assert surprises, "were greedy always right, there would be nothing to search for"


@pytest.mark.parametrize("seed", range(4))
def test_a_beam_of_moderate_width_finds_the_likeliest_text(wild_model: Wild, seed: int) -> None:
    wild = wild_model(vocabulary=6, seed=seed)
    sources = random_sequences([2, 5, 3, 4, 1, 6], vocabulary=6, seed=seed)
    answers = find(wild, sources, SearchConfig(beam=20, alpha=0.0), limits=[4] * 6)
    for source, texts in zip(sources, answers, strict=True):
        assert_same_text(texts[0], every_text(wild, source, vocabulary=6, limit=4, alpha=0.0)[0])


def test_the_best_texts_are_sorted_and_distinct(wild_model: Wild) -> None:
    for texts in find(wild_model(), MIXED[:60], SearchConfig(beam=6)):
        assert len(texts) == 6
        assert [text.score for text in texts] == sorted((text.score for text in texts), reverse=True)
        assert len({(tuple(text.tokens), text.finished) for text in texts}) == 6


@pytest.mark.parametrize("config", [SearchConfig(beam=1), SearchConfig(beam=5), SearchConfig(temperature=5.0)], ids=str)
def test_marks_are_never_written(wild_model: Wild, config: SearchConfig) -> None:
    # The model wants nothing more than to write them.
    wild = wild_model()
    head = wild.model.decoder.head
    head.weight[[PAD, BEGIN]] = 50 * head.weight[[5, 6]]
    for texts in find(wild, MIXED[:40], config):
        for text in texts:
            assert not {PAD, BEGIN, END} & set(text.tokens)
            assert math.isfinite(text.logprob)


# Prefixes and limits


@pytest.mark.parametrize("width", [1, 5])
def test_a_forced_prefix_is_kept_and_goes_on(wild_model: Wild, width: int) -> None:
    wild, sources = wild_model(), MIXED[:40]
    prefixes = random_sequences([n % 5 for n in range(40)], seed=8)
    config = SearchConfig(beam=width)
    together = find(wild, sources, config, prefixes=prefixes)
    for source, prefix, texts in zip(sources, prefixes, together, strict=True):
        alone = find(wild, [source], config, prefixes=[prefix])[0]
        assert len(texts) == len(alone)
        for text, other in zip(texts, alone, strict=True):
            assert text.tokens[: len(prefix)] == prefix
            assert_same_text(text, other)
    assert any(len(texts[0].tokens) > len(prefix) for prefix, texts in zip(prefixes, together, strict=True))


def test_greedy_given_its_own_beginning_writes_the_same_text(wild_model: Wild) -> None:
    wild, sources = wild_model(), MIXED[:12]
    for source, (text,) in zip(sources, find(wild, sources, SearchConfig(beam=1)), strict=True):
        for length in range(len(text.tokens)):
            limit = LIMIT - length
            prefix = text.tokens[:length]
            (again,) = find(wild, [source], SearchConfig(beam=1), prefixes=[prefix], limits=[limit])[0]
            assert again.tokens == text.tokens
            assert again.finished == text.finished


@pytest.mark.parametrize("width", [1, 5])
def test_every_sentence_has_its_own_limit(wild_model: Wild, width: int) -> None:
    wild, sources = wild_model(), MIXED[:60]
    limits = [1 + n % 10 for n in range(60)]
    answers = find(wild, sources, SearchConfig(beam=width), limits=limits)
    for limit, texts in zip(limits, answers, strict=True):
        for text in texts:
            assert len(text.tokens) + text.finished <= limit
            assert text.finished or len(text.tokens) == limit
    assert any(not texts[0].finished for texts in answers)
    assert any(texts[0].finished for texts in answers)


def test_the_limit_follows_from_the_source_alone() -> None:
    assert SearchConfig(factor=1.5, extra=4).limit(10) == 19


# Batches


@pytest.mark.parametrize("width", [1, 5])
def test_batched_equals_alone(wild_model: Wild, width: int) -> None:
    wild, config = wild_model(), SearchConfig(beam=width)
    limits = [4 + len(source) for source in MIXED]
    together = find(wild, MIXED, config, limits=limits)
    for source, limit, texts in zip(MIXED, limits, together, strict=True):
        alone = find(wild, [source], config, limits=[limit])[0]
        assert len(texts) == len(alone)
        for one, other in zip(texts, alone, strict=True):
            assert_same_text(one, other)


# Sampling


def test_the_same_seed_draws_the_same_text_whatever_the_batch(wild_model: Wild) -> None:
    wild, config, sources = wild_model(), SearchConfig(temperature=1.0, seed=4), MIXED[:40]
    together = find(wild, sources, config)
    backwards = find(wild, sources[::-1], config, numbers=list(range(40))[::-1])[::-1]
    for number, source in enumerate(sources):
        (alone,) = find(wild, [source], config, numbers=[number])[0]
        assert_same_text(together[number][0], alone)
        assert_same_text(backwards[number][0], alone)


def test_another_seed_or_another_place_draws_another_text(wild_model: Wild) -> None:
    wild, source = wild_model(), MIXED[5]

    def draw(seed: int, number: int) -> tuple[int, ...]:
        return tuple(find(wild, [source], SearchConfig(temperature=2.0, seed=seed), numbers=[number])[0][0].tokens)

    assert draw(0, 0) == draw(0, 0)
    assert len({draw(seed, 0) for seed in range(10)}) > 5
    assert len({draw(0, number) for number in range(1, 11)}) > 5


def test_as_the_temperature_falls_to_zero_sampling_becomes_greedy(wild_model: Wild) -> None:
    wild = wild_model()
    cold = find(wild, MIXED[:60], SearchConfig(temperature=1e-6))
    for one, other in zip(cold, find(wild, MIXED[:60], SearchConfig(beam=1)), strict=True):
        assert_same_text(one[0], other[0])


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("texts", [1, 50, 4000], ids=lambda texts: f"{texts} texts")
def test_tokens_are_drawn_as_often_as_softmax_says(temperature: float, texts: int) -> None:
    draws = 4000
    logits_V = torch.tensor([0.3, -1.0, float("-inf"), 2.0, 1.1, -4.0, 0.0])
    expected_V = (logits_V / temperature).softmax(-1).numpy()
    drawing, rows = Drawing(temperature=temperature), [Draws(3, number) for number in range(texts)]
    logits_BV = logits_V.expand(texts, -1).numpy()
    drawn = np.concatenate([draw_tokens(logits_BV, drawing, rows)[1] for _ in range(draws // texts)])
    counts_V = np.bincount(drawn, minlength=7)
    # Five standard deviations of a binomial, and a few draws of what is rare: passes unless something is wrong.
    spread_V = 5 * np.sqrt(draws * expected_V * (1 - expected_V)) + 3
    assert (np.abs(counts_V - draws * expected_V) <= spread_V).all()
    assert counts_V[2] == 0, "what is impossible is never drawn"


def test_successive_draws_of_one_text_are_independent() -> None:
    draws, equal_BV = Draws(0, 0), np.zeros((1, 2), dtype=np.float32)
    drawn = [draw_tokens(equal_BV, Drawing(temperature=1.0), [draws])[1].item() for _ in range(2000)]
    repeats = sum(one == other for one, other in itertools.pairwise(drawn))
    assert abs(repeats - 1000) < 5 * math.sqrt(500)


def test_a_temperature_that_means_nothing_is_refused() -> None:
    with pytest.raises(WrongUse, match="above 0, not 0"):
        Drawing(temperature=0.0)
