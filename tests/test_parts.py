"""A batch in parts, side by side, is the batch."""

from typing import Any, get_args

import numpy as np
import pytest
import torch
from torch import nn

from conftest import MARKS
from saccade.arch.encoder_decoder import EncoderDecoderConfig, StackConfig
from saccade.data.batches import SequencePairs
from saccade.data.ragged import Ragged
from saccade.models.encdec import EncoderDecoder, build_encoder_decoder
from saccade.train.gradients import PlainGradients, Way, choose_gradients
from saccade.train.objective import SequenceObjective
from saccade.train.parts import BatchParts

VOCABULARY = 40


def build(dropout: float) -> EncoderDecoder:
    torch.manual_seed(0)
    stack = StackConfig(layers=2, width=32, heads=2, hidden=64, dropout=dropout)
    return build_encoder_decoder(EncoderDecoderConfig(encoder=stack, decoder=stack), VOCABULARY).train()


def examples(count: int) -> SequencePairs:
    random = np.random.default_rng(0)

    def side() -> Ragged:
        return Ragged.of([random.integers(5, VOCABULARY, random.integers(1, 9)).tolist() for _ in range(count)])

    return SequencePairs(side(), side(), MARKS)


def gradients(model: EncoderDecoder, indices: np.ndarray, most: int) -> tuple[float, list[torch.Tensor]]:
    objective = SequenceObjective(smoothing=0.1)
    parts = BatchParts(model, objective, most)
    data = examples(int(indices.max()) + 1)
    batches = [data.batch(part) for part in parts.split(indices)]
    count = sum(objective.count(batch) for batch in batches)
    loss = sum(losses["loss"] for losses in parts.add_gradients(batches, count))
    return loss, [weight.grad for weight in model.parameters() if weight.grad is not None]


@pytest.mark.parametrize(("rows", "most"), [(9, 2), (9, 3), (1, 2), (2, 4)])
def test_parts_equal_the_whole(rows: int, most: int) -> None:
    loss, found = gradients(build(0.0), np.arange(rows), most)
    expected_loss, expected = gradients(build(0.0), np.arange(rows), 1)
    assert loss == pytest.approx(expected_loss, abs=1e-5)
    assert len(found) == len(list(build(0.0).parameters()))
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-4)


def test_threads_change_nothing_between_two_runs() -> None:
    runs = []
    for _ in range(4):
        model = build(0.3)
        torch.manual_seed(7)
        runs.append(gradients(model, np.arange(24), 2))
    for loss, found in runs[1:]:
        assert loss == runs[0][0]
        assert all(torch.equal(one, other) for one, other in zip(found, runs[0][1], strict=True))


def test_every_part_drops_something_else() -> None:
    model = build(0.5)
    objective = SequenceObjective()
    parts, batch = BatchParts(model, objective), examples(1).batch(np.arange(1))
    first, second = (losses["loss"] for losses in parts.add_gradients([batch, batch], objective.count(batch)))
    assert first != second


def test_the_number_of_threads_is_as_before() -> None:
    threads = torch.get_num_threads()
    gradients(build(0.0), np.arange(8), 2)
    assert torch.get_num_threads() == threads


def plain_gradients(model: EncoderDecoder, indices: np.ndarray) -> tuple[float, list[torch.Tensor]]:
    objective = SequenceObjective(smoothing=0.1)
    way = PlainGradients(model, objective)
    batches = [examples(int(indices.max()) + 1).batch(part) for part in way.split(indices)]
    assert len(batches) == 1
    loss = sum(losses["loss"] for losses in way.add_gradients(batches, objective.count(batches[0])))
    return loss, [weight.grad for weight in model.parameters() if weight.grad is not None]


def test_one_pass_over_the_batch_equals_one_part() -> None:
    found = []
    for compute in (plain_gradients, lambda model, indices: gradients(model, indices, 1)):
        model = build(0.3)
        torch.manual_seed(7)
        found.append(compute(model, np.arange(24)))
    assert found[0][0] == found[1][0]
    assert all(torch.equal(one, other) for one, other in zip(found[0][1], found[1][1], strict=True))


def test_gradients_of_several_batches_add_up() -> None:
    objective, data = SequenceObjective(smoothing=0.1), examples(6)
    halves = [data.batch(np.arange(3)), data.batch(np.arange(3, 6))]
    model, count = build(0.0), sum(objective.count(half) for half in halves)
    loss = sum(losses["loss"] for losses in PlainGradients(model, objective).add_gradients(halves, count))
    expected_loss, expected = gradients(build(0.0), np.arange(6), 1)
    assert loss == pytest.approx(expected_loss, abs=1e-5)
    torch.testing.assert_close([weight.grad for weight in model.parameters()], expected, atol=1e-5, rtol=1e-4)


def test_the_way_is_chosen_by_name() -> None:
    model, objective = build(0.0), SequenceObjective()
    kinds = {way: type(choose_gradients(way, model, objective, torch.float32)) for way in get_args(Way)}
    assert kinds == {"auto": BatchParts, "threads": BatchParts, "plain": PlainGradients}


class Wrapper(nn.Module):
    """Stands for what wraps a module, such as DDP: it sees its calls, and nothing of the model inside."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner, self.calls = inner, 0

    def forward(self, *batch: Any) -> Any:
        self.calls += 1
        return self.inner(*batch)


def test_a_batch_is_one_call_of_one_module() -> None:
    way = PlainGradients(build(0.0), SequenceObjective())
    way.module = wrapper = Wrapper(way.module)
    batch = examples(5).batch(np.arange(5))
    list(way.add_gradients([batch, batch], 1))
    assert wrapper.calls == 2
