"""A session: rows join, step and leave as they like, and each row's text is the one it writes alone."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
import torch

import conftest
from conftest import MARKS, SEVERAL, ancestor, by_pytorch, on_plain, random_sequences, read_arrays, small_model
from saccade.decode.row import Beam, Greedy, RowRequest, Sample, Strategy, Text
from saccade.decode.sample import Drawing
from saccade.decode.search import search
from saccade.decode.session import Session
from saccade.models.answering import language_runtime
from saccade.models.encdec import EncoderDecoder
from saccade.models.gpt import LanguageModel
from saccade.pipelines.opening import SequenceModel
from saccade.runtime.contract import AnyArrayMemory, AnyDecoder
from tiny import CONTEXT, tiny_gpt

BEGIN, END = MARKS.begin, MARKS.end
VOCABULARY = 30


@pytest.fixture(autouse=True)
def _no_gradients() -> Iterator[None]:
    with torch.inference_mode():
        yield


def on_kernels(model: EncoderDecoder) -> SequenceModel:
    return conftest.on_kernels(model)


def varied(model: EncoderDecoder) -> EncoderDecoder:
    """A model whose next token hangs on all that came before, and that ends some texts early and some late."""
    for name, weight in model.decoder.named_parameters():
        if weight.ndim == 2 and not name.startswith(("embed.", "head.")):
            weight.mul_(4)
    model.decoder.head.weight[END].mul_(1.5)
    return model


def ending_gpt(on: str) -> AnyDecoder:
    model = tiny_gpt(vocabulary=VOCABULARY)
    model.decoder.head.weight[END].mul_(1.4)
    return gpt_decoder(model, on)


def gpt_decoder(model: LanguageModel, on: str) -> AnyDecoder:
    if on == "kernels":
        conftest.on_kernels(small_model())  # skips where there are none
    return language_runtime(model, "int16" if on == "kernels" else "exact").decoder


STRATEGIES: list[Callable[[int], Strategy]] = [
    lambda number: Greedy(),
    lambda number: Greedy(alpha=0.6),
    lambda number: Beam(3, alpha=0.1 * (number % 7)),
    lambda number: Beam(5),
    lambda number: Beam(1),
    lambda number: Sample(Drawing(1.0, seed=number % 3), number),
    lambda number: Sample(Drawing(0.7, top_k=5, seed=2), number, alpha=0.6),
    lambda number: Sample(Drawing(1.3, top_p=0.9, repetition=1.3), number),
]


@dataclass(frozen=True)
class Planned:
    """A row, what it looks at, and when it joins and is dropped."""

    request: RowRequest
    source: list[int] | None
    joins: int
    dropped: int | None
    """After so many steps; None: it may end."""


def plan(random: np.random.Generator, count: int, *, longest_prompt: int, sources: bool) -> list[Planned]:
    """Rows of all strategies that come in twos and threes, mostly while others write."""
    planned, at = [], 0
    for number in range(count):
        at += int(random.choice([0, 0, 1, 2]))
        prefix, source = random_sequences([number % 4, 1 + number % 9], vocabulary=VOCABULARY, seed=number)
        if sources:
            prompt = [MARKS.start]
        else:
            prompt = [BEGIN, *random_sequences([number % longest_prompt], vocabulary=VOCABULARY, seed=number)[0]]
        request = RowRequest(prompt, int(random.integers(1, 20)), STRATEGIES[number % 8](number), prefix)
        dropped = at + int(random.integers(1, 6)) if random.random() < 0.2 else None
        planned.append(Planned(request, source if sources else None, at, dropped))
    return planned


def run(
    session: Session[Any], planned: Sequence[Planned], read: Callable[[list[list[int]]], AnyArrayMemory] | None
) -> tuple[list[Text], set[Text]]:
    """The texts of all rows, each joining and dropped at its time, and which were dropped; rows that join at once are
    read at once."""
    texts: dict[int, Text] = {}
    dropped: set[Text] = set()
    for step in range(10_000):
        joining = [n for n, row in enumerate(planned) if row.joins == step]
        if joining:
            memory = read([planned[n].source or [] for n in joining]) if read else None
            texts |= zip(joining, session.add_all([planned[n].request for n in joining], memory), strict=True)
        for n, row in enumerate(planned):
            if row.dropped == step and n in texts and not texts[n].over:
                session.drop(texts[n])
                dropped.add(texts[n])
        before = len(session)
        news = session.step()
        assert len(session) == before - sum(text.over for text in news)
        if not session and len(texts) == len(planned):
            break
    return [texts[n] for n in range(len(planned))], dropped


def assert_alone_is_the_same(
    planned: Sequence[Planned], make: Callable[[], Session[Any]], read: Any, near: float
) -> None:
    texts, dropped = run(make(), planned, read)
    assert len({len(text.tokens) for text in texts}) > 5, "texts of many lengths"
    assert len({type(text.request.strategy) for text in dropped}) > 1
    for row, text in zip(planned, texts, strict=True):
        request = row.request
        if text in dropped:
            if text.written == 0 or isinstance(request.strategy, Beam):
                continue
            # In mid-text it was what it would have been with its limit there.
            request = replace(request, limit=text.written)
        (alone,) = run(make(), [Planned(request, row.source, 0, None)], read)[0]
        assert alone.over
        assert len(text.best) == len(alone.best)
        for one, other in zip(text.best, alone.best, strict=True):
            assert (one.tokens, one.finished) == (other.tokens, other.finished)
            if near == 0:
                assert (one.logprob, one.score) == (other.logprob, other.score)
            assert one.logprob == pytest.approx(other.logprob, abs=near)
            assert one.score == pytest.approx(other.score, abs=near)


SEQUENCES: dict[str, tuple[Callable[[], EncoderDecoder], Callable[[EncoderDecoder], SequenceModel], float]] = {
    "on the kernels": (lambda: varied(small_model(vocabulary=VOCABULARY, width=32)), on_kernels, 0.0),
    "on plain": (lambda: varied(small_model(vocabulary=VOCABULARY, width=32)), on_plain, 1e-4),
    "in PyTorch": (lambda: varied(small_model(vocabulary=VOCABULARY, width=32)), by_pytorch, 1e-4),
    "recurrent, on plain": (lambda: varied(ancestor("scaled dot, fed", vocabulary=VOCABULARY)), on_plain, 1e-4),
    "two memories, on plain": (lambda: varied(ancestor(SEVERAL[0], vocabulary=VOCABULARY)), on_plain, 1e-4),
    "two memories, recurrent": (lambda: varied(ancestor(SEVERAL[2], vocabulary=VOCABULARY)), on_plain, 1e-4),
    "two memories, in PyTorch": (lambda: varied(ancestor(SEVERAL[1], vocabulary=VOCABULARY)), by_pytorch, 1e-4),
    "convolution, in PyTorch": (lambda: varied(ancestor("convolution", vocabulary=VOCABULARY)), by_pytorch, 1e-4),
}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("family", SEQUENCES)
def test_translations_that_join_and_leave_at_random_are_each_alone(family: str, seed: int) -> None:
    build, on, near = SEQUENCES[family]
    model = on(build())
    planned = plan(np.random.default_rng(seed), 48, longest_prompt=1, sources=True)

    def make() -> Session[Any]:
        return Session(model.decoder, MARKS)

    def read(sources: list[list[int]]) -> AnyArrayMemory:
        return read_arrays(model, sources)

    assert_alone_is_the_same(planned, make, read, near)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("on", "near"), [("kernels", 0.0), ("plain", 1e-4)])
def test_completions_that_join_and_leave_at_random_are_each_alone(on: str, near: float, seed: int) -> None:
    decoder = ending_gpt(on)
    # Longer than the context, and shorter: some read their second half again, some have no room at once.
    planned = plan(np.random.default_rng(seed), 48, longest_prompt=CONTEXT + 5, sources=False)

    def make() -> Session[Any]:
        return Session(decoder, MARKS, context=CONTEXT)

    texts, _ = run(make(), planned, None)
    slid = [text for text in texts if len([*text.request.prompt, *text.tokens]) > CONTEXT]
    assert len({type(text.request.strategy) for text in slid}) == 3
    assert_alone_is_the_same(planned, make, None, near)


@pytest.mark.parametrize("width", [2, 4])
def test_beams_of_a_language_model_go_on_past_the_context(width: int) -> None:
    """As a plain loop would write them, a beam at a time: the same windows, the same sums."""
    model = tiny_gpt(vocabulary=12)
    model.decoder.head.weight[END] = -1e4 * model.decoder.head.weight[5].sign()
    context, limit = 8, 20
    prompt = [BEGIN, 5, 6, 7]
    beams: list[tuple[float, list[int], list[int]]] = [(0.0, [], prompt)]
    for _ in range(limit):
        longer = []
        for total, written, window in beams:
            logits_V = model(torch.tensor([window]))[0, -1].clone()
            logits_V[[*MARKS.never_written, END]] = float("-inf")
            for token, logprob in enumerate(logits_V.log_softmax(-1).tolist()):
                after = [*window, token]
                longer.append((total + logprob, [*written, token], after if len(after) <= context else after[-4:]))
        beams = sorted(longer, key=lambda beam: -beam[0])[:width]
    request = RowRequest(prompt, limit, Beam(width, alpha=0.0))
    marks = _Endless(**MARKS.table())
    (found,) = search(gpt_decoder(model, "plain"), [request], marks=marks, context=context)
    assert [text.tokens for text in found] == [written for _, written, _ in beams]
    assert [text.logprob for text in found] == pytest.approx([total for total, _, _ in beams], abs=1e-3)


class _Endless(type(MARKS)):  # type: ignore[misc]
    @property
    def never_written(self) -> tuple[int, ...]:
        return (*super().never_written, self.end)


# Places


def rows_of(session: Session[Any]) -> int:
    return 0 if session.state is None else int(session.state.rows)


@pytest.mark.parametrize("on", [on_kernels, on_plain, by_pytorch])
def test_a_row_that_is_dropped_in_mid_text_is_gone_after_the_next_step(
    on: Callable[[EncoderDecoder], SequenceModel],
) -> None:
    model = on(small_model())
    session = Session(model.decoder, _Endless(**MARKS.table()))
    sources = random_sequences([4, 6, 3])
    strategies: list[Strategy] = [Greedy(), Beam(4), Sample(Drawing(1.0))]
    requests = [RowRequest([MARKS.start], 30, strategy) for strategy in strategies]
    greedy, beam, sample = session.add_all(requests, read_arrays(model, sources))
    for _ in range(3):
        session.step()
    assert rows_of(session) == 6
    session.drop(beam)
    assert len(session) == 2
    assert set(session.step()) == {greedy, sample}
    assert rows_of(session) == 2
    assert beam.over
    assert not beam.finished
    session.drop(greedy)
    session.drop(greedy)
    session.step()
    assert rows_of(session) == 1
    session.add_all(requests[:2], read_arrays(model, sources[:2]))
    session.step()
    session.step()
    assert rows_of(session) == 6
    assert len(sample.tokens) == 7, "and wrote on all the while"


def test_a_row_that_is_dropped_before_it_is_read_is_never_read() -> None:
    model = on_plain(small_model())
    session = Session(model.decoder, _Endless(**MARKS.table()))
    sources = random_sequences([4, 6, 3, 5])
    requests = [RowRequest([MARKS.start], 30, strategy) for strategy in (Beam(2), Greedy(), Beam(2), Greedy())]
    texts = session.add_all(requests, read_arrays(model, sources))
    session.drop(texts[0])
    session.drop(texts[1])
    session.step()
    assert rows_of(session) == 2
    while session:
        session.step()
    for place in (2, 3):
        (expected,) = search(
            model.decoder,
            [requests[place]],
            read_arrays(model, [sources[place]]),
            marks=session.marks,
        )
        assert [text.tokens for text in texts[place].best] == [text.tokens for text in expected]
    assert texts[0].tokens == texts[1].tokens == []


def test_rows_that_join_in_one_step_are_read_in_one_call() -> None:
    decoder = ending_gpt("plain")
    calls = []

    class Counting:
        def __getattr__(self, name: str) -> Any:
            calls.append(name)
            return getattr(decoder, name)

    session = Session(Counting(), MARKS, context=CONTEXT)  # type: ignore[arg-type]
    for number in range(9):
        session.add(RowRequest([BEGIN, 5 + number % 3], 6, STRATEGIES[number % 8](number)))
    session.step()
    assert calls == ["start", "extend"]
    session.step()
    assert calls == ["start", "extend", "step"]


AT_ONCE, SHORT = 16, 10_000
ROOM_OF_A_ROW = 2 * 4 * 1 * 8 * CONTEXT
"""Bytes: keys and values, float32, layers, width, positions."""


def through_one_session(on: str) -> Iterator[Session[Any]]:
    """Ten thousand short rows, at most so many at a time; the session after every step."""
    model = tiny_gpt(vocabulary=VOCABULARY, layers=1, width=8, heads=1)
    model.decoder.head.weight[END].mul_(1.4)
    session = Session(gpt_decoder(model, on), MARKS, context=CONTEXT)
    prompts = random_sequences([n % 5 for n in range(50)], vocabulary=VOCABULARY)
    added = done = 0
    while done < SHORT:
        free = AT_ONCE - len(session)
        numbers = range(added, min(SHORT, added + free)) if free >= AT_ONCE // 4 else range(0)
        strategies = [Greedy() if n % 5 else Sample(Drawing(1.0), n) for n in numbers]
        rows = zip(numbers, strategies, strict=True)
        session.add_all([RowRequest([BEGIN, *prompts[n % 50]], 2 + n % 3, strategy) for n, strategy in rows])
        added += len(numbers)
        done += sum(text.over for text in session.step())
        yield session
    assert not session


def test_ten_thousand_rows_need_the_room_of_sixteen() -> None:
    most = 0
    for session in through_one_session("plain"):
        # Rows that ended in this step leave in the next; those that joined are in their places already.
        assert rows_of(session) <= 2 * AT_ONCE
        most = max(most, 0 if session.state is None else session.state.nbytes)
    assert 0 < most <= 2 * AT_ONCE * ROOM_OF_A_ROW
    assert session.state is None, "and none when all have left"


def test_the_pool_stays_bounded_over_ten_thousand_rows() -> None:
    most = 0
    for session in through_one_session("kernels"):
        assert rows_of(session) <= 2 * AT_ONCE
        most = max(most, 0 if session.state is None else session.state.nbytes)
    # The pool may double its room, and holds the rows that leave beside those that join.
    assert 0 < most <= 4 * AT_ONCE * ROOM_OF_A_ROW


def test_rows_that_look_at_a_memory_do_not_slide() -> None:
    model = on_plain(small_model())
    session = Session(model.decoder, MARKS, context=8)
    with pytest.raises(ValueError, match="memory"):
        session.add(RowRequest([MARKS.start], 5), read_arrays(model, [[5, 6]]))


def test_a_row_reads_something_before_it_writes() -> None:
    with pytest.raises(ValueError, match="at least one token"):
        RowRequest([], 5)
