"""Several processes train as one does: losses, checkpoints on any number of processes, layouts that cannot be.

The long form, with all families, layouts and kills, is tests/parallel.py.
"""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from conftest import small_model
from rank_trainings import FAMILIES, Asked, train_asked
from saccade.errors import WrongUse
from saccade.nn.dropout import Dropout, drawn_again, drawn_from
from saccade.train.checkpoint import Checkpoint, checkpoints, read_checkpoint
from saccade.train.gradients import PlainGradients
from saccade.train.loop import TrainConfig
from saccade.train.objective import SequenceObjective
from saccade.train.parallel import ParallelConfig, RankGradients, _insist_that_it_can_be_divided
from saccade.train.ranks import Ranks
from saccade.train.recompute import recompute_blocks
from saccade.train.shards import dealt

TESTS = Path(__file__).parent
ENVIRONMENT = {"OMP_NUM_THREADS": "1", "TORCH_CPP_LOG_LEVEL": "ERROR"}


def together(processes: int, *asked: Asked) -> None:
    """All trainings, one after the other, in so many processes."""
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
    path = os.pathsep.join([str(TESTS), str(TESTS.parent / "src"), os.environ.get("PYTHONPATH", "")])
    ended = subprocess.run(
        [*torchrun, str(TESTS / "rank_trainings.py"), json.dumps([asdict(each) for each in asked])],
        env=os.environ | ENVIRONMENT | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert ended.returncode == 0, ended.stderr[-3000:]


def losses(out: Path) -> dict[int, float]:
    return {int(step): loss for step, loss in json.loads((out / "losses.json").read_text()).items()}


def largest_difference(one: Path, other: Path) -> float:
    ours, theirs = losses(one), losses(other)
    assert ours.keys() == theirs.keys()
    assert len(ours) > 10
    return max(abs(loss - theirs[step]) for step, loss in ours.items())


LAYOUTS: dict[str, tuple[str, dict[str, Any]]] = {
    "gpt copied": ("gpt", {"data": 2}),
    "gpt shared": ("gpt", {"sharded": 2}),
    "vit shared, Muon": ("vit", {"sharded": 2}),
    "vit divided, Muon": ("vit", {"tensor": 2}),
    "transformer shared, computed again": ("transformer", {"sharded": 2, "checkpointing": "full"}),
    "transformer divided": ("transformer", {"tensor": 2}),
    "bert divided": ("bert", {"tensor": 2}),
    "rnn copied": ("rnn", {"data": 2}),
}
EVERY = {"validate_every": 12}
MORE: dict[str, dict[str, Any]] = {"vit": {"muon": 0.9}, "rnn": {"accumulate": 2}}
"""Of a family's trainings."""
GROUPED = {"key_heads": 2, "gated": True, "positions": {"kind": "rotary"}, "norm": "rms"}
"""Of a GPT: two query heads share one of keys and values, and the feed-forward network is two stacked matrices."""


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every family in one process, and in two: twelve steps each, 150 in the script."""
    home = tmp_path_factory.mktemp("ranks")
    with mock.patch("saccade.train.log.draw_curve"):
        for family in FAMILIES:
            own = EVERY | MORE.get(family, {})
            asked = Asked(family, str(home / family), steps=12, train=own | {"gradients": "plain"})
            train_asked(asked)
        # Dropout of two processes is that of one with two parts.
        parts = Asked(
            "gpt", str(home / "gpt parts"), 12, dropout=0.1, train=EVERY | {"gradients": "threads"}, threads=2
        )
        train_asked(replace(parts, model=GROUPED))
        train_asked(Asked("gpt", str(home / "gpt whole"), 6, train={"validate_every": 3}))
    torch.set_num_threads(1)
    asked = [
        Asked(family, str(home / name), steps=12, parallel=layout, train=EVERY | MORE.get(family, {}))
        for name, (family, layout) in LAYOUTS.items()
    ]
    dropped = Asked("gpt", str(home / "gpt dropped"), 12, {"sharded": 2}, GROUPED, EVERY, dropout=0.1)
    divided = replace(
        dropped, out=str(home / "gpt dropped and divided"), parallel={"data": 1, "tensor": 2}, dropout=0.0
    )
    whole = replace(divided, out=str(home / "gpt grouped"), parallel={}, train=EVERY | {"gradients": "plain"})
    with mock.patch("saccade.train.log.draw_curve"):
        train_asked(whole)
    first = Asked("gpt", str(home / "gpt stopped"), 6, {"tensor": 2}, train={"validate_every": 3}, stop=3)
    together(2, *asked, dropped, divided, first)
    return home


@pytest.mark.parametrize("name", LAYOUTS)
def test_two_processes_have_the_losses_of_one(trained: Path, name: str) -> None:
    family, layout = LAYOUTS[name]
    bound = 1e-4 if "tensor" in layout else 1e-5
    assert largest_difference(trained / name, trained / family) < bound


def test_two_processes_drop_what_two_threads_of_one_process_drop(trained: Path) -> None:
    assert largest_difference(trained / "gpt dropped", trained / "gpt parts") < 1e-5


def test_heads_that_share_keys_are_divided_with_them(trained: Path) -> None:
    assert largest_difference(trained / "gpt dropped and divided", trained / "gpt grouped") < 1e-4


def newest(home: Path) -> Checkpoint:
    return read_checkpoint(checkpoints(home / "checkpoints")[-1])


def assert_same(one: dict[str, Tensor], other: dict[str, Tensor]) -> None:
    """Bit for bit."""
    assert one.keys() == other.keys()
    assert [name for name in one if not torch.equal(one[name], other[name])] == []


def test_a_checkpoint_of_two_processes_is_gone_on_with_by_one(trained: Path, tmp_path: Path) -> None:
    """Its weights are in the order of one process, whose training goes on with them as its own would have."""
    stopped = newest(trained / "gpt stopped")
    assert stopped.step == 3
    assert stopped.weights.keys() == newest(trained / "gpt whole").weights.keys()
    with mock.patch("saccade.train.log.draw_curve"):
        train_asked(Asked("gpt", str(trained / "gpt stopped"), 6, train={"validate_every": 3}, resume=True))
    ended, expected = newest(trained / "gpt stopped"), newest(trained / "gpt whole")
    assert ended.state["sampler"] == expected.state["sampler"]
    for name, weight in expected.weights.items():
        torch.testing.assert_close(ended.weights[name], weight, atol=1e-4, rtol=0)


# Without other processes


@pytest.mark.parametrize(("sizes", "parts"), [((8, 8, 8), 2), ((8, 4, 4), 4), ((6, 6), 3)])
def test_rows_are_dealt_out_so_that_each_part_has_its_share_of_every_matrix(sizes: Sequence[int], parts: int) -> None:
    order = dealt(sizes, parts).tolist()
    assert sorted(order) == list(range(sum(sizes)))
    starts = np.cumsum([0, *sizes])
    each = len(order) // parts
    for part in range(parts):
        rows = order[part * each : (part + 1) * each]
        expected = [
            s + part * size // parts + n for s, size in zip(starts, sizes, strict=False) for n in range(size // parts)
        ]
        assert rows == expected


@pytest.mark.parametrize(
    ("layout", "processes", "numbers"),
    [
        ({"sharded": 2}, 3, ["2 sharded", "3"]),
        ({"data": 4}, 2, ["4 data", "2"]),
        ({"tensor": 2}, 1, ["there is 1", "torchrun --nproc-per-node 2"]),
    ],
)
def test_layouts_for_other_numbers_of_processes_are_refused(
    layout: dict[str, int], processes: int, numbers: list[str]
) -> None:
    with pytest.raises(WrongUse) as refused:
        ParallelConfig(**layout).among(processes)
    assert all(number in str(refused.value) for number in numbers)


def test_copies_are_as_many_as_there_are_processes_for() -> None:
    assert ParallelConfig(sharded=2, tensor=2).among(8).data == 2
    assert ParallelConfig().among(1).data == 1


def test_heads_that_do_not_divide_are_refused_before_the_first_step() -> None:
    with pytest.raises(WrongUse, match="3, which does not divide 2"):
        _insist_that_it_can_be_divided(small_model(heads=2), ParallelConfig(tensor=3))
    with pytest.raises(WrongUse, match="only stacks of Transformer blocks"):
        _insist_that_it_can_be_divided(nn.Linear(2, 2), ParallelConfig(tensor=2))


def test_one_process_refuses_a_divided_layout() -> None:
    asked = Asked("gpt", "unused", parallel={"sharded": 2})
    config = TrainConfig(steps=1, parallel=ParallelConfig(sharded=2))
    work = FAMILIES["gpt"](config, asked)
    from saccade.train.loop import equip

    with pytest.raises(WrongUse, match="2 processes, but there is 1"):
        equip(work.model, work.objective, config)


@pytest.mark.parametrize("dropout", [0.0, 0.2])
def test_blocks_that_are_computed_again_give_the_same_gradients_bit_for_bit(dropout: float) -> None:
    found = []
    for again in (False, True):
        work = FAMILIES["transformer"](TrainConfig(steps=1), Asked("transformer", "unused", dropout=dropout))
        model = work.model.train()
        if again:
            assert recompute_blocks(model) == 4
        way = PlainGradients(model, SequenceObjective(0.1))
        torch.manual_seed(5)
        batch = work.batch(np.arange(20))
        told = list(way.add_gradients([batch], 100))
        found.append((told, [weight.grad for weight in way.weights]))
    assert found[0][0] == found[1][0]
    assert all(torch.equal(one, other) for one, other in zip(found[0][1], found[1][1], strict=True))


def test_what_is_computed_again_drops_the_same() -> None:
    layer, ones = Dropout(0.5), torch.ones(4, 64)
    with drawn_from(3):
        first, again = drawn_again()
        with first:
            dropped = layer(ones)
        layer(ones)
        with again:
            assert torch.equal(layer(ones), dropped)
        assert not torch.equal(layer(ones), dropped)


def test_batches_smaller_than_the_number_of_copies_leave_no_process_without_an_example() -> None:
    way = RankGradients.__new__(RankGradients)
    parts = []
    for replica in range(3):
        way.replica, way.replicas, way.idle, way.counted = replica, 3, [], True
        way.ranks, way.objective = Ranks(), mock.Mock(count=len)  # type: ignore[assignment]
        [part] = way.split(np.array([7, 9]))
        parts.append((part.tolist(), way.count([part])))
    assert parts == [([7], 1), ([9], 1), ([7], 0)]
