"""Decoding states: written piece by piece, reordered or joined, a text has its teacher-forced logits."""

import pytest
import torch
from torch import Tensor

from conftest import ANCESTORS, ancestor, random_sequences, random_tokens_BT, read, small_model
from saccade.arch.positions import LearnedConfig, NoPositionsConfig, RotaryConfig, SinusoidalConfig
from saccade.models.contract import Decoder, State
from saccade.models.encdec import EncoderDecoder

KINDS = {
    f"{order} {positions.kind} {combine}": {"order": order, "positions": positions, "combine": combine}
    for order in ("pre", "post")
    for positions, combine in (
        (SinusoidalConfig(), "add"),
        (SinusoidalConfig(layout="halves"), "concatenate"),
        (LearnedConfig(length=24), "add"),
        (NoPositionsConfig(), "add"),
        (RotaryConfig(base=100), "add"),
    )
}
LAYERS, HEADS, HEAD_WIDTH = 2, 2, 8


@pytest.fixture(params=[*KINDS, *ANCESTORS])
def model(request: pytest.FixtureRequest) -> EncoderDecoder:
    if request.param in ANCESTORS:
        return ancestor(request.param)
    return small_model(layers=LAYERS, heads=HEADS, width=HEADS * HEAD_WIDTH, **KINDS[request.param])


def teacher_forced(model: EncoderDecoder, source: list[int], target: list[int]) -> Tensor:
    """[T, V]: the logits of one text alone, in one pass."""
    logits_BTV: Tensor = model.decoder(torch.tensor([target]), read(model, [source]))
    return logits_BTV[0]


def write(decoder: Decoder, texts: list[list[int]], state: State) -> State:
    _, state = extend(decoder, texts, state)
    return state


def extend(decoder: Decoder, texts: list[list[int]], state: State) -> tuple[Tensor, State]:
    """Texts of any lengths, padded with a token that would be noticed."""
    longest = max(len(text) for text in texts)
    tokens_BT = torch.tensor([text + [7] * (longest - len(text)) for text in texts])
    return decoder.extend(tokens_BT, torch.tensor([len(text) for text in texts]), state)


def assert_close(found: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)


def assert_goes_on(
    model: EncoderDecoder, state: State, sources: list[list[int]], texts: list[list[int]], steps: int = 3
) -> None:
    """The state's rows go on from their texts as if each had been written alone, from the beginning."""
    more_BT = random_tokens_BT(len(texts), steps, seed=99)
    assert state.rows == len(texts)
    expected = [
        teacher_forced(model, source, text + more_T)[-steps:]
        for source, text, more_T in zip(sources, texts, more_BT.tolist(), strict=True)
    ]
    for step in range(steps):
        logits_BV, state = model.decoder.step(more_BT[:, step], state)
        assert_close(logits_BV, torch.stack([logits_TV[step] for logits_TV in expected]))


# Step by step = extend = teacher forced


@pytest.mark.parametrize("pieces", [[1] * 9, [9], [4, 5], [1, 3, 1, 4], [5, 1, 1, 1, 1]], ids=str)
def test_written_in_any_pieces_the_logits_are_the_teacher_forced_ones(model: EncoderDecoder, pieces: list[int]) -> None:
    memory = read(model, random_sequences([5, 8, 2]))
    target_BT = random_tokens_BT(3, 9, seed=1)
    expected_BTV = model.decoder(target_BT, memory)
    state, at = model.decoder.start(memory), 0
    for piece in pieces:
        part_BT = target_BT[:, at : at + piece]
        if piece == 1:
            logits_BV, state = model.decoder.step(part_BT[:, 0], state)
            assert_close(logits_BV, expected_BTV[:, at])
        else:
            logits_BTV, state = model.decoder.extend(part_BT, torch.full((3,), piece), state)
            assert_close(logits_BTV, expected_BTV[:, at : at + piece])
        at += piece


def test_rows_of_different_lengths_are_each_row_alone(model: EncoderDecoder) -> None:
    sources, texts = random_sequences([4, 7, 2, 5]), random_sequences([2, 5, 1, 3], seed=1)
    logits_BTV, state = extend(model.decoder, texts, model.decoder.start(read(model, sources)))
    for row, (source, text) in enumerate(zip(sources, texts, strict=True)):
        assert_close(logits_BTV[row, : len(text)], teacher_forced(model, source, text))
    assert_goes_on(model, state, sources, texts)


def test_rows_of_different_lengths_can_be_extended_again(model: EncoderDecoder) -> None:
    sources, texts, more = random_sequences([4, 7, 2]), random_sequences([2, 5, 1], seed=1), random_sequences([4, 1, 3])
    state = write(model.decoder, texts, model.decoder.start(read(model, sources)))
    logits_BTV, state = extend(model.decoder, more, state)
    whole = [text + rest for text, rest in zip(texts, more, strict=True)]
    for row, source in enumerate(sources):
        expected_TV = teacher_forced(model, source, whole[row])[len(texts[row]) :]
        assert_close(logits_BTV[row, : len(more[row])], expected_TV)
    assert_goes_on(model, state, sources, whole)


# Reorder and join


def test_reordered_rows_are_those_rows_from_the_beginning(model: EncoderDecoder) -> None:
    sources, texts = random_sequences([4, 7, 2]), random_sequences([3, 3, 3], seed=1)
    state = write(model.decoder, texts, model.decoder.start(read(model, sources)))
    for rows in ([2, 0, 1], [1], [0, 2], [1, 1, 0, 2]):
        after = state.reorder(torch.tensor(rows))
        assert_goes_on(model, after, [sources[i] for i in rows], [texts[i] for i in rows])


@pytest.mark.parametrize(
    "chosen",
    [
        [(0, [2, 2, 0]), (1, [0, 1, 2]), (2, [1, 1, 1]), (3, [2, 1, 0])],
        [(0, [1, 0, 2]), (2, [2, 2, 1])],
        [(3, [0, 0, 1])],
        [(2, [0, 1, 2]), (1, [1, 2, 2]), (2, [2, 0, 0])],
    ],
    ids=["within sentences", "sentences dropped", "one left", "sentences moved and doubled"],
)
@pytest.mark.parametrize("lengths", [[4] * 12, [1, 4, 2, 3, 3, 3, 5, 1, 1, 2, 4, 2]], ids=["even", "uneven"])
def test_reorder_with_several_rows_per_sentence(
    model: EncoderDecoder, chosen: list[tuple[int, list[int]]], lengths: list[int]
) -> None:
    sources, texts = random_sequences([4, 7, 2, 5]), random_sequences(lengths, seed=1)
    state = write(model.decoder, texts, model.decoder.start(read(model, sources), rows=3))
    rows = [3 * sentence + place for sentence, places in chosen for place in places]
    after = state.reorder(torch.tensor(rows))
    assert_goes_on(model, after, [sources[row // 3] for row in rows], [texts[row] for row in rows], steps=2)


def test_a_state_without_its_longest_row_is_as_long_as_what_is_left() -> None:
    # Six learned positions: were the dropped row still counted, the second step would ask for a seventh.
    model = small_model(positions=LearnedConfig(length=6))
    sources, texts = random_sequences([4, 4]), random_sequences([5, 1], seed=1)
    state = write(model.decoder, texts, model.decoder.start(read(model, sources)))
    assert_goes_on(model, state.reorder(torch.tensor([1])), sources[1:], texts[1:], steps=5)


@pytest.mark.parametrize("lengths", [([3, 3], [3]), ([2, 2], [5]), ([1, 4], [3])], ids=["equal", "apart", "uneven"])
@pytest.mark.parametrize("source_lengths", [([5, 5], [5]), ([6, 2], [4]), ([3, 3], [8])], ids=str)
def test_joined_states_are_each_alone(
    model: EncoderDecoder, lengths: tuple[list[int], list[int]], source_lengths: tuple[list[int], list[int]]
) -> None:
    sources = [random_sequences(part, seed=seed) for seed, part in enumerate(source_lengths)]
    texts = [random_sequences(part, seed=seed + 2) for seed, part in enumerate(lengths)]
    for order in ((0, 1), (1, 0)):
        one, other = (write(model.decoder, texts[i], model.decoder.start(read(model, sources[i]))) for i in order)
        all_sources = [source for i in order for source in sources[i]]
        assert_goes_on(model, one.join(other), all_sources, [text for i in order for text in texts[i]])


def test_joined_states_keep_their_rows_by_sentence() -> None:
    model = small_model()
    sources, texts = random_sequences([4, 7, 2]), random_sequences([2, 3, 1, 2, 4, 1], seed=1)
    one = write(model.decoder, texts[:4], model.decoder.start(read(model, sources[:2]), rows=2))
    other = write(model.decoder, texts[4:], model.decoder.start(read(model, sources[2:]), rows=2))
    by_row = [sources[row // 2] for row in range(6)]
    assert_goes_on(model, one.join(other).reorder(torch.arange(6)), by_row, texts)


def test_join_of_a_state_that_has_written_nothing_is_refused() -> None:
    model = small_model()
    memory = read(model, random_sequences([4]))
    written = write(model.decoder, [[5, 6]], model.decoder.start(memory))
    with pytest.raises(ValueError, match="hold something"):
        written.join(model.decoder.start(memory))


# What it holds


def test_the_keys_and_values_of_a_sentence_are_held_once_however_many_rows_look_at_it() -> None:
    model = small_model(layers=LAYERS, heads=HEADS, width=HEADS * HEAD_WIDTH)
    memory = read(model, random_sequences([4, 6, 3]))
    sources = memory.states_MSD.shape[1]
    state = model.decoder.start(memory, rows=5)
    assert state.rows == 15
    assert len(state.memories["source"].layers) == LAYERS
    for _ in range(3):
        for keys, values in state.memories["source"].layers:
            assert keys.shape == values.shape == (3, HEADS, sources, HEAD_WIDTH)
        _, state = model.decoder.step(torch.full((15,), 4), state)
    kept = state.reorder(torch.arange(5, 15))
    assert all(keys.shape[0] == values.shape[0] == 2 for keys, values in kept.memories["source"].layers)


def test_bytes_grow_with_use_only() -> None:
    model = small_model(layers=LAYERS, heads=HEADS, width=HEADS * HEAD_WIDTH)
    memory = read(model, random_sequences([4, 4]))
    state = model.decoder.start(memory, rows=3)
    numbers_of_memory = LAYERS * 2 * memory.states_MSD.numel()
    assert state.nbytes == 4 * numbers_of_memory, "nothing is held for what is not yet written"
    a_position = 4 * LAYERS * 2 * HEADS * HEAD_WIDTH * state.rows
    sizes = []
    for length in range(1, 40):
        _, state = model.decoder.step(torch.full((6,), 4), state)
        written = state.nbytes - 4 * numbers_of_memory
        assert length * a_position <= written <= 2 * length * a_position
        sizes.append(written)
    assert sizes == sorted(sizes)
    assert len(set(sizes)) < 10, "room is doubled, not made anew at every step"
    fewer = state.reorder(torch.arange(3))
    assert fewer.nbytes <= state.nbytes // 2, "nothing is kept of the rows and sentences left behind"
