"""Learning: a small Transformer must learn to copy, reverse and sort, and do it with sequences it never saw."""

from collections.abc import Callable

import pytest
import torch
from torch import nn

from conftest import FIRST_SYMBOL, MARKS, by_pytorch, read_arrays, toy_pairs
from saccade.arch.encoder_decoder import EncoderDecoderConfig
from saccade.data.batches import SequencePairs
from saccade.data.ragged import Ragged
from saccade.data.sampler import Sampler
from saccade.decode.row import RowRequest
from saccade.decode.search import search
from saccade.models.encdec import EncoderDecoder, build_encoder_decoder
from saccade.train.objective import SequenceObjective
from saccade.train.optim import AdamConfig, build_optimizer
from saccade.train.schedule import linear_to_zero

SYMBOLS, LONGEST, SEEN, UNSEEN = 10, 8, 12_000, 500
REWRITES: dict[str, Callable[[list[int]], list[int]]] = {
    "copy": lambda source: source,
    "reverse": lambda source: source[::-1],
    "sort": sorted,
}
STACK = {"layers": 2, "width": 64, "heads": 4, "feedforward": 128, "dropout": 0.0}
STEPS, WARMUP, RATE, BATCH_TOKENS = 600, 40, 4e-3, 256


def learn(pairs: SequencePairs) -> EncoderDecoder:
    torch.manual_seed(0)
    config = EncoderDecoderConfig.read({"encoder": STACK, "decoder": STACK}, where="toy")
    model = build_encoder_decoder(config, FIRST_SYMBOL + SYMBOLS)
    objective, optimizer = SequenceObjective(), build_optimizer(model, AdamConfig(rate=RATE))
    sampler = Sampler(*pairs.sizes(), budget=BATCH_TOKENS, seed=0)
    for step in range(1, STEPS + 1):
        optimizer.param_groups[0]["lr"] = optimizer.param_groups[1]["lr"] = RATE * linear_to_zero(step, WARMUP, STEPS)
        loss, count = objective(model, pairs.batch(next(sampler)))["loss"]
        (loss / count).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
    return model.eval()


def part(pairs: SequencePairs, start: int, stop: int) -> SequencePairs:
    source, target = ([side[i].tolist() for i in range(start, stop)] for side in (pairs.source, pairs.target))
    return SequencePairs(Ragged.of(source), Ragged.of(target), MARKS)


@pytest.mark.parametrize("name", REWRITES)
def test_a_small_transformer_learns_it_and_does_it_with_sequences_it_never_saw(name: str) -> None:
    # All sequences are distinct, so those held out were never seen; the last are held out, because by then all
    # ten sequences of one symbol have been drawn, and a length that is never trained is not what is asked here.
    pairs = toy_pairs(REWRITES[name], SEEN + UNSEEN, symbols=SYMBOLS, longest=LONGEST)
    unseen = part(pairs, SEEN, SEEN + UNSEEN)
    model = learn(part(pairs, 0, SEEN))
    sources = [unseen.source[i].tolist() for i in range(UNSEEN)]
    runtime = by_pytorch(model)
    memory = read_arrays(runtime, sources)
    requests = [RowRequest([MARKS.start], 2 * LONGEST)] * UNSEEN
    texts = search(runtime.decoder, requests, memory, marks=MARKS)
    right = [
        text.finished and text.tokens == REWRITES[name](source) for (text,), source in zip(texts, sources, strict=True)
    ]
    assert sum(right) >= 0.99 * UNSEEN, f"{UNSEEN - sum(right)} of {UNSEEN} wrong"
