"""The C kernels answer as plain NumPy does: the same texts, step by step, alone and together."""

from collections.abc import Iterator
from typing import Any, cast

import numpy as np
import pytest
import torch

from conftest import (
    MARKS,
    by_pytorch,
    on_kernels,
    on_plain,
    random_sequences,
    random_tokens_BT,
    read_arrays,
    small_model,
)
from saccade import native
from saccade.arch.encoder_decoder import EncoderDecoderConfig, StackConfig
from saccade.arch.positions import AnyPositionsConfig, LearnedConfig, NoPositionsConfig, RotaryConfig, SinusoidalConfig
from saccade.decode.parallel import side_by_side
from saccade.decode.row import Beam, RowRequest
from saccade.decode.search import SearchConfig, search
from saccade.models.encdec import EncoderDecoder, build_encoder_decoder
from saccade.pipelines.opening import SequenceModel
from saccade.runtime.contract import Array, How
from saccade.runtime.kernel_state import FIRST_STEPS, KernelState
from saccade.runtime.kernels import LARGE_VOCABULARY

SOURCES = random_sequences([7, 3, 5])


@pytest.fixture(autouse=True)
def _no_gradients() -> Iterator[None]:
    with torch.inference_mode():
        yield


@pytest.fixture(params=["int16", "int8"])
def how(request: pytest.FixtureRequest) -> How:
    return cast(How, request.param)


def near(how: How) -> float:
    return 0.15 if how == "int8" else 5e-3


def close(one: Array, other: Array, how: How = "int16") -> bool:
    return float(np.linalg.norm(one - other) / np.linalg.norm(other)) < near(how)


def ids(rows: int, length: int, seed: int = 0) -> Array:
    return random_tokens_BT(rows, length, seed=seed).numpy()


def write(model: SequenceModel, tokens_BT: Array, lengths: list[int], rows: int = 2) -> tuple[Any, Any]:
    """Logits and state after so many tokens of each row."""
    state = model.decoder.start(read_arrays(model, SOURCES), rows)
    return model.decoder.extend(tokens_BT, np.array(lengths), state, every=True)


def assert_alike(model: EncoderDecoder, how: How = "int16") -> None:
    """Encoder, ragged beginnings, steps, beams that change places, sentences that leave, states that join."""
    plain, fast = on_plain(model), on_kernels(model, how)
    found, expected = (read_arrays(one, SOURCES) for one in (fast, plain))
    assert close(found.states_MSD[found.mask_MS], expected.states_MSD[expected.mask_MS], how)
    tokens_BT, lengths = ids(6, 4), [4, 2, 1, 4, 3, 4]
    (expected, state), (found, fast_state) = write(plain, tokens_BT, lengths), write(fast, tokens_BT, lengths)
    for row, length in enumerate(lengths):
        assert close(found[row, :length], expected[row, :length], how)
    for rows in ([1, 1, 3, 2, 5, 5], [0, 1, 4, 5], [2, 3]):
        state, fast_state = state.reorder(np.array(rows)), fast_state.reorder(np.array(rows))
        for step in range(3):
            next_B = ids(len(rows), 1, seed=step)[:, 0]
            expected, state = plain.decoder.step(next_B, state)
            found, fast_state = fast.decoder.step(next_B, fast_state)
            assert close(found, expected, how)
    _, other = write(plain, tokens_BT, lengths)
    _, fast_other = write(fast, tokens_BT, lengths)
    state, fast_state = state.join(other), fast_state.join(fast_other)
    next_B = ids(8, 1, seed=9)[:, 0]
    assert close(fast.decoder.step(next_B, fast_state)[0], plain.decoder.step(next_B, state)[0], how)


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize(
    "positions",
    [
        SinusoidalConfig(),
        LearnedConfig(length=40),
        NoPositionsConfig(),
        RotaryConfig(),
        RotaryConfig(layout="halves", base=50),
    ],
    ids=str,
)
def test_every_kind_of_stack_is_the_plain_one(norm: str, positions: AnyPositionsConfig) -> None:
    assert_alike(small_model(order=norm, positions=positions, width=24, heads=3))


def test_concatenated_positions_and_gelu_are_the_plain_ones() -> None:
    assert_alike(small_model(combine="concatenate"))
    stack = StackConfig(layers=2, width=20, heads=2, feedforward=50, activation="gelu")
    assert_alike(build_encoder_decoder(EncoderDecoderConfig(encoder=stack, decoder=stack), 20).eval())


def test_no_biases_and_another_epsilon_are_the_plain_ones() -> None:
    stack = StackConfig(layers=2, width=20, heads=2, feedforward=50, bias=False, epsilon=0.1)
    assert_alike(build_encoder_decoder(EncoderDecoderConfig(encoder=stack, decoder=stack), 20).eval())


def test_every_packing_is_the_plain_model_up_to_rounding(how: How) -> None:
    assert_alike(small_model(width=32), how)


def test_long_texts_outgrow_the_first_room() -> None:
    plain, fast = on_plain(model := small_model()), on_kernels(model)
    tokens_BT = ids(6, 3 * FIRST_STEPS + 1)
    lengths = [tokens_BT.shape[1]] * 6
    (expected, _), (found, state) = write(plain, tokens_BT, lengths), write(fast, tokens_BT, lengths)
    assert close(found, expected)
    assert isinstance(state, KernelState)
    assert state.nbytes < 20 * state.rows * lengths[0] * state.pool.shape[0] * state.pool.shape[2]


def test_of_a_large_vocabulary_the_likeliest_tokens_have_all_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    if native.kernels() is None or not native.needed().multiplies_bytes():
        pytest.skip("no C kernels that multiply bytes")
    model = small_model(vocabulary=LARGE_VOCABULARY + 7, width=32)
    rough = on_kernels(model)
    assert rough.decoder
    monkeypatch.setattr("saccade.runtime.kernels.LARGE_VOCABULARY", 10**9)
    exact = on_kernels(model)
    tokens_BT = ids(6, 3, seed=1)
    (found, _), (expected, _) = write(rough, tokens_BT, [3] * 6), write(exact, tokens_BT, [3] * 6)
    assert not np.array_equal(found, expected)
    best = np.argsort(-expected, axis=-1)[..., :8]
    assert np.array_equal(np.take_along_axis(found, best, -1), np.take_along_axis(expected, best, -1))
    assert np.array_equal(np.argsort(-found, axis=-1)[..., :8], best)
    assert close(found, expected, "int8")
    sums = [torch.from_numpy(logits).logsumexp(dim=-1) for logits in (found, expected)]
    torch.testing.assert_close(*sums, atol=3e-3, rtol=0)


def test_memory_grows_only_as_needed_and_memories_are_not_copied() -> None:
    fast = on_kernels(small_model())
    state = fast.decoder.start(read_arrays(fast, SOURCES), 5)
    assert isinstance(state, KernelState)
    sizes = []
    for step in range(FIRST_STEPS + 1):
        _, state = fast.decoder.step(ids(15, 1, seed=step)[:, 0], state)
        assert isinstance(state, KernelState)
        sizes.append(state.pool.nbytes)
    assert sizes[0] == sizes[-2]
    assert sizes[0] < sizes[-1] < 2.1 * sizes[0]
    assert len(state.memories.sources) == 3  # per sentence, not per beam
    pool = state.pool.ctypes.data
    state = state.reorder(np.arange(14, -1, -1))
    assert state.pool.ctypes.data == pool  # beams change places without moving keys


@pytest.mark.parametrize("threads", [2, 3])
def test_texts_that_threads_read_apart_are_read_as_alone(
    how: How, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many texts: each thread takes some of them through all layers."""
    model = on_kernels(small_model(), how)
    texts = random_sequences([70, 64, 90, 3, 81, 66, 100, 1, 77, 64, 64, 95, 128, 66, 70])
    alone = [read_arrays(model, [text]).states_MSD[0] for text in texts]
    monkeypatch.setattr(native, "threads", lambda: threads)
    found = read_arrays(model, texts)
    assert found.mask_MS is not None
    for states_SD, mask_S, expected_SD in zip(found.states_MSD, found.mask_MS, alone, strict=True):
        assert np.array_equal(states_SD[mask_S], expected_SD)


def test_positions_beyond_the_learned_ones_are_refused() -> None:
    fast = on_kernels(small_model(positions=LearnedConfig(length=10)))
    with pytest.raises(ValueError, match="10 learned positions"):
        write(fast, ids(6, 11), [11] * 6)


@pytest.mark.parametrize("config", [SearchConfig(beam=1), SearchConfig(beam=4), SearchConfig(temperature=0.9)])
def test_the_same_texts_are_found_alone_and_together(config: SearchConfig) -> None:
    model = small_model(vocabulary=30, width=32)
    for weight in model.decoder.blocks.parameters():
        if weight.ndim == 2:
            weight.mul_(4)
    fast = on_kernels(model)
    sources = random_sequences(list(range(1, 30)) * 2, vocabulary=30)

    def find(chosen: list[int], model: SequenceModel) -> list[tuple[list[int], float]]:
        memory = read_arrays(model, [sources[i] for i in chosen])
        requests = [RowRequest([MARKS.start], 10, config.strategy(i)) for i in chosen]
        found = search(model.decoder, requests, memory, marks=MARKS)
        return [(best[0].tokens, best[0].score) for best in found]

    together = find(list(range(len(sources))), fast)
    for i in range(len(sources)):
        tokens, score = find([i], fast)[0]
        assert tokens == together[i][0]
        assert score == together[i][1]
    plain = find(list(range(len(sources))), by_pytorch(model))
    same = sum(one[0] == other[0] for one, other in zip(plain, together, strict=True))
    assert same >= 0.9 * len(sources)


def test_repeated_rows_go_on_as_rows_that_were_written_alike() -> None:
    small = small_model()
    for model in (by_pytorch(small), on_plain(small), on_kernels(small)):
        tokens_BT, next_B = ids(3, 4), ids(6, 1, seed=1)[:, 0]
        _, once = write(model, tokens_BT, [4, 2, 3], rows=1)
        _, twice = write(model, tokens_BT.repeat(2, axis=0), [4, 4, 2, 2, 3, 3], rows=2)
        found, expected = model.decoder.step(next_B, once.repeat(2))[0], model.decoder.step(next_B, twice)[0]
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_batches_side_by_side_are_batches_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    fast = on_kernels(small_model(width=32))
    batches = [random_sequences([4, 6], seed=seed) for seed in range(9)]

    def work(sources: list[list[int]]) -> list[list[int]]:
        requests = [RowRequest([MARKS.start], 8, Beam(3))] * 2
        found = search(fast.decoder, requests, read_arrays(fast, sources), marks=MARKS)
        return [best[0].tokens for best in found]

    monkeypatch.setattr(native, "threads", lambda: 3)
    assert list(side_by_side(work, batches)) == [work(batch) for batch in batches]


def test_an_error_in_a_batch_reaches_the_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "threads", lambda: 2)

    def work(number: int) -> int:
        if number == 5:
            raise ValueError("the fifth")
        return number

    found = side_by_side(work, list(range(20)))
    assert [next(found) for _ in range(5)] == [0, 1, 2, 3, 4]
    with pytest.raises(ValueError, match="the fifth"):
        next(found)
