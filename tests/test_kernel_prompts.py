"""Whole prompts and texts of many lengths on the C kernels, and what their pool keeps."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch

from conftest import MARKS, on_kernels, random_sequences, random_tokens_BT, read_arrays, small_model
from saccade import native
from saccade.arch.bert import BertConfig
from saccade.arch.gpt import GptConfig
from saccade.arch.heads import EncoderModel, WordsHead
from saccade.arch.positions import RotaryConfig
from saccade.models.answering import arrays_of, language_runtime
from saccade.models.encoders import build_encoder_model
from saccade.models.gpt import LanguageModel, build_gpt
from saccade.runtime import kernels
from saccade.runtime.contract import Array
from saccade.runtime.kernel_state import FIRST_STEPS
from saccade.runtime.kernels import KernelEncoder
from saccade.runtime.layers import part_of
from saccade.runtime.plain import PlainEncoder
from saccade.sources.text import pad_sources

SOURCES = random_sequences([7, 3, 5])


@pytest.fixture(autouse=True)
def _kernels_without_gradients() -> Iterator[None]:
    if native.kernels() is None:
        pytest.skip(f"no C kernels: {native.why_not()}")
    with torch.inference_mode():
        yield


def ids(rows: int, length: int, seed: int = 0) -> Array:
    return random_tokens_BT(rows, length, seed=seed).numpy()


def close(found: Array, expected: Array) -> bool:
    """Within the rounding of 12-bit weights and 13-bit activations."""
    return float(np.linalg.norm(found - expected)) <= 5e-3 * float(np.linalg.norm(expected))


PARTS: dict[str, dict[str, Any]] = {
    "gpt-2": {"activation": "gelu-tanh"},
    "llama": {
        **{"norm": "rms", "gated": True, "activation": "silu", "bias": False, "key_heads": 2},
        "positions": RotaryConfig(layout="halves"),
    },
    "windows": {"windows": (0, 3, 20), "activation": "relu"},
    "one key head, gated": {"key_heads": 1, "gated": True, "activation": "gelu"},
    "odd heads": {"width": 36, "heads": 3, "key_heads": 1},
}


def tiny_language_model(name: str) -> LanguageModel:
    sizes = {"layers": 3, "width": 32, "heads": 4, "feedforward": 40, "context": 160}
    config = GptConfig.read(sizes | PARTS[name], where=name)
    model = build_gpt(config, 30).eval()
    for weight in model.parameters():
        if weight.ndim == 1:
            weight.add_(0.1 * torch.randn_like(weight))
    return model


@pytest.mark.parametrize("name", PARTS)
def test_a_prompt_in_one_call_is_the_prompt_token_by_token(name: str) -> None:
    fast = language_runtime(tiny_language_model(name), "int16").decoder
    tokens_BT, lengths = ids(3, 150), np.array([150, 1, 47])
    logits_BTV, state = fast.extend(tokens_BT, lengths, fast.start(None, 3), every=True)
    last_BV, other = fast.extend(tokens_BT, lengths, fast.start(None, 3))
    assert np.array_equal(last_BV, logits_BTV[np.arange(3), lengths - 1])
    for row, length in enumerate(lengths):
        alone = fast.start(None, 1)
        for place in range(length):
            logits_1V, alone = fast.step(tokens_BT[row, place : place + 1], alone)
            assert close(logits_BTV[row, place], logits_1V[0])
    after_BV, _ = fast.step(ids(3, 1, seed=5)[:, 0], state)
    assert np.array_equal(after_BV, fast.step(ids(3, 1, seed=5)[:, 0], other)[0])


@pytest.mark.parametrize("name", PARTS)
def test_a_prompt_is_read_alike_alone_and_among_others(name: str) -> None:
    fast = language_runtime(tiny_language_model(name), "int16").decoder
    tokens_BT, lengths = ids(5, 100), np.array([100, 1, 7, 33, 64])
    together_BV, _ = fast.extend(tokens_BT, lengths, fast.start(None, 5))
    for row, length in enumerate(lengths):
        alone_1V, _ = fast.extend(tokens_BT[row : row + 1, :length], lengths[row : row + 1], fast.start(None, 1))
        assert np.array_equal(alone_1V[0], together_BV[row])


def test_pieces_of_a_long_prompt_are_the_prompt(monkeypatch: pytest.MonkeyPatch) -> None:
    fast = language_runtime(tiny_language_model("windows"), "int16").decoder
    tokens_BT, lengths = ids(3, 150), np.array([150, 3, 40])
    whole, _ = fast.extend(tokens_BT, lengths, fast.start(None, 3), every=True)
    monkeypatch.setattr(kernels, "ROWS_AT_ONCE", 32)
    pieces, _ = fast.extend(tokens_BT, lengths, fast.start(None, 3), every=True)
    for row, length in enumerate(lengths):
        assert close(pieces[row, :length], whole[row, :length])


@pytest.mark.parametrize("name", ["bert", "gated rms"])
def test_texts_of_many_lengths_are_read_alike_alone_and_together(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = {"bert": {}, "gated rms": {"norm": "rms", "gated": True, "order": "pre", "positions": RotaryConfig()}}[name]
    config = BertConfig.read({"layers": 2, "width": 32, "heads": 4, "feedforward": 48, "context": 90} | parts, where="")
    model = build_encoder_model(EncoderModel(encoder=config, head=WordsHead(next_sentence=False)), 30).eval()
    weights = part_of(arrays_of(model), "encoder")
    plain, fast = PlainEncoder(config, weights), KernelEncoder(config, weights, 16)
    lengths = [90, 1, 17, 40, 16, 5]
    tokens, mask = pad_sources(random_sequences([length - 1 for length in lengths], vocabulary=30), MARKS)
    segments = (np.arange(90)[None] > 20).astype(np.int64).repeat(6, axis=0) if config.segments else None
    found = fast(tokens, mask, segments).states_MSD
    assert mask is not None
    assert close(found[mask], plain(tokens, mask, segments).states_MSD[mask])
    monkeypatch.setattr(kernels, "ROWS_AT_ONCE", 40)
    assert np.array_equal(fast(tokens, mask, segments).states_MSD[mask], found[mask])
    for row, length in enumerate(lengths):
        its_segments = None if segments is None else segments[row : row + 1, :length]
        alone = fast(tokens[row : row + 1, :length], None, its_segments).states_MSD
        assert np.array_equal(alone[0], found[row, :length])


def test_slots_that_nobody_names_are_used_again() -> None:
    fast = language_runtime(tiny_language_model("gpt-2"), "int16").decoder
    _, state = fast.extend(ids(4, 20), np.full(4, 20), fast.start(None, 4))
    largest = 0
    for turn in range(300):
        _, fresh = fast.extend(ids(1, 20, seed=turn), np.array([20]), fast.start(None, 1))
        state = state.reorder(np.arange(1, 4)).join(fresh)
        _, state = fast.step(ids(4, 1, seed=turn)[:, 0], state)
        largest = max(largest, state.pool.shape[1])
    assert largest <= 2 * FIRST_STEPS * 4


def test_memories_that_nobody_looks_at_are_let_go() -> None:
    fast = on_kernels(small_model())
    state = fast.decoder.start(read_arrays(fast, SOURCES))
    for turn in range(50):
        fresh = fast.decoder.start(read_arrays(fast, random_sequences([5 + turn % 7], seed=turn)))
        state = state.reorder(np.arange(1, state.rows)).join(fresh)
    assert len(state.memories.owners) == len(SOURCES)
    assert len(state.memories.sources) == len(SOURCES)
