"""Training: rates follow their formulas, losses count real tokens, an interrupted run ends as if it had not been."""

import json
import math
import shutil
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from conftest import random_sequences, small_model, toy_pairs
from saccade.data.batches import SequenceBatch, SequencePairs
from saccade.data.ragged import Ragged
from saccade.data.sampler import Sampler
from saccade.errors import UserError
from saccade.tokens.marks import Marks
from saccade.train.checkpoint import average, checkpoints, read_checkpoint, read_weights
from saccade.train.clip import clip
from saccade.train.log import Log
from saccade.train.loop import Outcome, TrainConfig, Work, train
from saccade.train.objective import Losses, SequenceObjective
from saccade.train.optim import AdamConfig, build_optimizer
from saccade.train.parts import BatchParts
from saccade.train.schedule import inverse_square_root, linear_to_zero, trapezoid

MARKS = Marks()
PAD = MARKS.pad

PAIRS = toy_pairs(lambda source: source[::-1], 120)
VOCABULARY = 13


def weights_of(model: nn.Module) -> dict[str, Tensor]:
    return {name: weight.detach().clone() for name, weight in model.named_parameters()}


def assert_same_weights(one: dict[str, Tensor], other: dict[str, Tensor]) -> None:
    """Bit for bit."""
    assert one.keys() == other.keys()
    assert [name for name in one if not torch.equal(one[name], other[name])] == []


# Schedules


@given(st.integers(1, 300_000), st.integers(1, 10_000), st.sampled_from([64, 512, 1024]))
def test_inverse_square_root_is_the_formula_of_the_paper(step: int, warmup: int, width: int) -> None:
    peak = (width * warmup) ** -0.5
    paper = width**-0.5 * min(step**-0.5, step * warmup**-1.5)
    assert peak * inverse_square_root(step, warmup, steps=300_000) == pytest.approx(paper, rel=1e-9)


@given(st.integers(1, 500), st.integers(0, 500))
def test_linear_rises_to_its_peak_at_the_end_of_warm_up_and_falls_to_almost_nothing(steps: int, warmup: int) -> None:
    shares = [linear_to_zero(step, warmup, steps) for step in range(1, steps + 1)]
    assert all(0 < share <= 1 for share in shares), "no step is without effect"
    if 1 <= warmup <= steps:
        assert shares[warmup - 1] == 1
        rise = np.diff([0.0, *shares[:warmup]])
        np.testing.assert_allclose(rise, 1 / warmup)
    if warmup < steps:
        fall = np.diff([*shares[max(warmup, 1) - 1 :], 0.0])
        np.testing.assert_allclose(fall, fall[0])
        assert fall[0] < 0
        assert shares[-1] == pytest.approx(1 / (steps + 1 - warmup))


@given(st.integers(10, 500), st.integers(0, 100))
def test_a_trapezoid_is_flat_until_its_last_fifth_whatever_the_number_of_steps(steps: int, warmup: int) -> None:
    shares = np.array([trapezoid(step, warmup, steps) for step in range(1, steps + 1)])
    assert ((shares > 0) & (shares <= 1)).all()
    flat = int(steps * 0.8)
    longer = [trapezoid(step, warmup, 10 * steps) for step in range(1, flat + 1)]
    np.testing.assert_allclose(shares[:flat], longer)
    assert (np.diff(shares[max(flat, warmup) :]) < 0).all()
    assert shares[-1] <= 1 / (0.2 * steps) + 1e-9


# The objective


def batch_of(sources: list[list[int]], targets: list[list[int]]) -> SequenceBatch:
    return SequencePairs(Ragged.of(sources), Ragged.of(targets), MARKS).batch(np.arange(len(sources)))


TOY_BATCH = batch_of(random_sequences([3, 1, 5]), random_sequences([2, 6, 1], seed=1))


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.5])
def test_the_loss_is_pytorchs_cross_entropy_summed_over_real_tokens(smoothing: float) -> None:
    model = small_model()
    losses = SequenceObjective(smoothing)(model, TOY_BATCH)
    logits_BTV = model(TOY_BATCH.source, TOY_BATCH.source_mask, TOY_BATCH.target_BT)

    def expected(amount: float) -> Tensor:
        logits, labels = logits_BTV.flatten(0, 1), TOY_BATCH.labels_BT.flatten()
        return F.cross_entropy(logits, labels, ignore_index=PAD, label_smoothing=amount, reduction="sum")

    torch.testing.assert_close(losses["loss"][0], expected(smoothing))
    assert losses["loss"][1] == SequenceObjective(smoothing).count(TOY_BATCH) == 3 + 7 + 2
    if smoothing:
        torch.testing.assert_close(losses["nll"][0], expected(0.0).detach())


def test_only_real_tokens_are_counted_and_trained_on() -> None:
    model, objective = small_model(), SequenceObjective(0.1)

    def loss_and_gradients(batch: SequenceBatch) -> list[Tensor]:
        loss, count = objective(model, batch)["loss"]
        assert count == 12
        return [loss, *torch.autograd.grad(loss, list(model.parameters()))]

    expected = loss_and_gradients(TOY_BATCH)
    # Three columns of padding more, and another token wherever there is padding in what the decoder reads.
    assert TOY_BATCH.real_BT is not None
    real_BT = F.pad(TOY_BATCH.real_BT, (0, 3))
    wider = replace(
        TOY_BATCH,
        target_BT=F.pad(TOY_BATCH.target_BT, (0, 3)),
        labels_BT=F.pad(TOY_BATCH.labels_BT, (0, 3), value=PAD),
        real_BT=real_BT,
    )
    noisy_BT = wider.target_BT.masked_fill(~real_BT, 9)
    for batch in (wider, replace(wider, target_BT=noisy_BT)):
        for one, other in zip(loss_and_gradients(batch), expected, strict=True):
            torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-4)


def test_the_sum_over_a_batch_is_the_sum_over_its_examples() -> None:
    model, objective = small_model(), SequenceObjective(0.1)
    sources, targets = random_sequences([3, 1, 5]), random_sequences([2, 6, 1], seed=1)
    alone = [objective(model, batch_of([s], [t]))["loss"][0] for s, t in zip(sources, targets, strict=True)]
    torch.testing.assert_close(objective(model, TOY_BATCH)["loss"][0], sum(alone))


def test_flops_do_not_count_padding() -> None:
    model, objective = small_model(), SequenceObjective()
    assert objective.flops(model, TOY_BATCH) == 3 * model.flops(source=4 + 2 + 6, target=12)


# The optimiser


def test_weight_decay_is_for_matrices_alone() -> None:
    model = small_model()
    before = weights_of(model)
    optimizer = build_optimizer(model, AdamConfig(rate=0.1, decay=0.5))
    for weight in model.parameters():
        weight.grad = torch.zeros_like(weight)
    optimizer.step()
    for name, weight in model.named_parameters():
        expected = before[name] * (1 - 0.1 * 0.5) if weight.ndim >= 2 else before[name]
        torch.testing.assert_close(weight.detach(), expected)


@pytest.mark.parametrize("size", [1e-4, 10.0])
def test_clipping_is_pytorchs_bit_for_bit_whether_there_is_something_to_clip_or_not(size: float) -> None:
    found = {}
    for name in ("ours", "pytorchs"):
        weights = [nn.Parameter(torch.zeros(3, 5)), nn.Parameter(torch.zeros(7)), nn.Parameter(torch.zeros(2))]
        torch.manual_seed(0)
        for weight in weights[:2]:  # one weight was not used
            weight.grad = size * torch.randn_like(weight)
        norm = clip(weights, 1.0) if name == "ours" else nn.utils.clip_grad_norm_(weights, 1.0).item()
        assert weights[2].grad is None
        found[name] = [torch.tensor(norm), *(weight.grad for weight in weights[:2] if weight.grad is not None)]
    assert (found["ours"][0] > 1) == (size > 1)
    assert all(torch.equal(one, other) for one, other in zip(found["ours"], found["pytorchs"], strict=True))


# The loop, on toy data


@pytest.fixture(autouse=True)
def _no_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawing the curve after every validation takes longer than all the rest; the uninterrupted run draws it."""
    monkeypatch.setattr("saccade.train.log.draw_curve", lambda entries, path: None)


SETTINGS = TrainConfig(
    steps=12, batch_tokens=64, warmup=3, validate_every=4, select_by="-loss", average=2, adam=AdamConfig(rate=3e-3)
)


def validation_loss(model: nn.Module) -> dict[str, float]:
    assert not model.training
    loss, count = SequenceObjective()(model, PAIRS.batch(np.arange(40)))["loss"]
    return {"loss": loss.item() / count}


def work(
    config: TrainConfig = SETTINGS,
    *,
    dropout: float = 0.1,
    validate: Callable[[nn.Module], dict[str, float]] = validation_loss,
) -> Work:
    """A fresh toy task, as `prepare` would make it. Dropout is on, so that a run's random numbers matter."""
    model = small_model(vocabulary=VOCABULARY, dropout=dropout, seed=config.seed)
    return Work(
        model=model,
        objective=SequenceObjective(config.smoothing),
        sampler=Sampler(*PAIRS.sizes(), budget=config.batch_tokens, seed=config.seed),
        batch=PAIRS.batch,
        validate=validate,
        describe=lambda indices: f"with {len(indices)} pairs, the first number {indices[0]}",
    )


def run(work: Work, folder: Path, config: TrainConfig = SETTINGS, *, resume: bool = False) -> Outcome:
    folder.mkdir(exist_ok=True)
    return train(work, config, folder, Log(folder, quiet=True), resume=resume)


def metrics(folder: Path) -> list[dict[str, object]]:
    """What was logged, without what depends on the clock."""
    entries = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [{k: v for k, v in entry.items() if k not in ("tokens_per_second", "gigaflops")} for entry in entries]


@dataclass(frozen=True)
class Finished:
    """An uninterrupted run, to compare with."""

    folder: Path
    weights: dict[str, Tensor]
    outcome: Outcome


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    folder = tmp_path_factory.mktemp("uninterrupted")
    task = work()
    outcome = run(task, folder)
    return Finished(folder, weights_of(task.model), outcome)


def assert_ended_as(uninterrupted: Finished, folder: Path, task: Work, outcome: Outcome) -> None:
    """The same to the last bit, but for the time it took."""
    assert replace(outcome, seconds=0) == replace(uninterrupted.outcome, seconds=0)
    assert_same_weights(weights_of(task.model), uninterrupted.weights)
    assert metrics(folder) == metrics(uninterrupted.folder)
    newest, expected = (
        read_checkpoint(checkpoints(place / "checkpoints")[-1]) for place in (folder, uninterrupted.folder)
    )
    for checkpoint in (newest, expected):
        checkpoint.state["progress"].pop("seconds")
    assert newest.state == expected.state
    assert_same_weights(newest.weights, expected.weights)
    assert_same_weights(newest.training, expected.training)


def test_training_lowers_the_loss(uninterrupted: Finished) -> None:
    assert uninterrupted.outcome.finished
    assert uninterrupted.outcome.step == 12
    assert uninterrupted.outcome.scores["loss"] < validation_loss(work().model)["loss"] - 0.2
    assert (uninterrupted.folder / "curve.png").read_bytes().startswith(b"\x89PNG")


def test_the_same_seed_gives_the_same_weights(uninterrupted: Finished, tmp_path: Path) -> None:
    task = work()
    assert_ended_as(uninterrupted, tmp_path, task, run(task, tmp_path))


def test_another_seed_gives_other_weights(uninterrupted: Finished, tmp_path: Path) -> None:
    config = SETTINGS.model_copy(update={"seed": 2})
    task = work(config)
    run(task, tmp_path, config)
    assert not torch.equal(weights_of(task.model)["decoder.head.weight"], uninterrupted.weights["decoder.head.weight"])


class Trouble(Sampler):
    """Gives batches as always, and does something when the n-th is asked for."""

    def __init__(self, at: int, what: Callable[[], None]) -> None:
        super().__init__(*PAIRS.sizes(), budget=SETTINGS.batch_tokens, seed=SETTINGS.seed)
        self.left, self.what = at, what

    def __next__(self) -> np.ndarray:
        self.left -= 1
        if self.left == 0:
            self.what()
        return super().__next__()


@pytest.mark.parametrize("step", [1, 4, 6, 9])
def test_interrupted_by_ctrl_c_and_resumed_is_uninterrupted(uninterrupted: Finished, tmp_path: Path, step: int) -> None:
    before = signal.getsignal(signal.SIGINT)
    stopped = run(replace(work(), sampler=Trouble(step, lambda: signal.raise_signal(signal.SIGINT))), tmp_path)
    assert not stopped.finished
    assert stopped.step == step, "the step under way is finished and saved, none after it begun"
    assert signal.getsignal(signal.SIGINT) is before
    torch.manual_seed(12345)  # another process has other random numbers
    task = work()
    outcome = run(task, tmp_path, resume=True)
    assert_ended_as(uninterrupted, tmp_path, task, outcome)
    assert outcome.seconds > stopped.seconds > 0, "the time of both is counted"


def crash() -> None:
    raise RuntimeError("power failure")


@pytest.mark.parametrize("step", [2, 7, 12])
def test_killed_and_resumed_is_uninterrupted(uninterrupted: Finished, tmp_path: Path, step: int) -> None:
    with pytest.raises(RuntimeError, match="power failure"):
        run(replace(work(), sampler=Trouble(step, crash)), tmp_path)
    torch.manual_seed(12345)
    task = work()
    assert_ended_as(uninterrupted, tmp_path, task, run(task, tmp_path, resume=True))


def test_interrupted_twice_and_resumed_is_uninterrupted(uninterrupted: Finished, tmp_path: Path) -> None:
    for resume, count in ((False, 5), (True, 2)):
        trouble = Trouble(count, lambda: signal.raise_signal(signal.SIGINT))
        assert not run(replace(work(), sampler=trouble), tmp_path, resume=resume).finished
    task = work()
    assert_ended_as(uninterrupted, tmp_path, task, run(task, tmp_path, resume=True))


def test_a_weight_nobody_uses_stands_in_no_ones_way(tmp_path: Path) -> None:
    tasks = [work(), work()]
    for task in tasks:
        task.model.unused = nn.Parameter(torch.ones(3))
    stopping = replace(tasks[0], sampler=Trouble(5, lambda: signal.raise_signal(signal.SIGINT)))
    assert not run(stopping, tmp_path).finished
    assert run(tasks[1], tmp_path, resume=True).finished
    assert weights_of(tasks[1].model)["unused"].tolist() == [1, 1, 1]


def test_a_second_ctrl_c_stops_at_once(tmp_path: Path) -> None:
    def twice() -> None:
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        run(replace(work(), sampler=Trouble(2, twice)), tmp_path)


@pytest.mark.parametrize("damage", ["weights.safetensors", "training.safetensors", "checkpoint.json", "missing"])
def test_a_damaged_checkpoint_is_passed_over_for_the_one_before(
    uninterrupted: Finished, tmp_path: Path, damage: str
) -> None:
    with pytest.raises(RuntimeError):
        run(replace(work(), sampler=Trouble(10, crash)), tmp_path)
    newest = checkpoints(tmp_path / "checkpoints")[-1]
    assert newest.name == "step-00000008"
    if damage == "missing":
        (newest / "training.safetensors").unlink()
    else:
        content = bytearray((newest / damage).read_bytes())
        content[len(content) // 2] ^= 1
        (newest / damage).write_bytes(content)
    task = work()
    assert_ended_as(uninterrupted, tmp_path, task, run(task, tmp_path, resume=True))


def test_when_no_checkpoint_is_whole_nothing_is_trained(uninterrupted: Finished, tmp_path: Path) -> None:
    shutil.copytree(uninterrupted.folder, tmp_path, dirs_exist_ok=True)
    for path in checkpoints(tmp_path / "checkpoints"):
        (path / "checkpoint.json").write_text("{}")
    with pytest.raises(UserError, match=r"no checkpoint in .* is whole; .*step-00000012"):
        run(work(), tmp_path, resume=True)


def test_a_finished_run_resumed_is_finished(uninterrupted: Finished, tmp_path: Path) -> None:
    shutil.copytree(uninterrupted.folder, tmp_path, dirs_exist_ok=True)
    task = work()
    assert_ended_as(uninterrupted, tmp_path, task, run(task, tmp_path, resume=True))


def test_a_checkpoint_of_another_model_is_refused_with_both_shapes(uninterrupted: Finished, tmp_path: Path) -> None:
    shutil.copytree(uninterrupted.folder, tmp_path, dirs_exist_ok=True)
    other = replace(work(), model=small_model(vocabulary=VOCABULARY + 1))
    with pytest.raises(UserError, match=r"another model: \S+ is \(13, 16\), the recipe asks \(14, 16\)"):
        run(other, tmp_path, resume=True)


# Accumulation


class Fixed(Sampler):
    """Gives the batches it was told to, in that order, again and again."""

    def __init__(self, batches: list[list[int]]) -> None:
        super().__init__(*PAIRS.sizes(), budget=64, seed=0)
        self.given = [np.array(batch) for batch in batches]

    def __iter__(self) -> Iterator[np.ndarray]:
        return self

    def __next__(self) -> np.ndarray:
        self.given = [*self.given[1:], self.given[0]]
        return self.given[-1]


def test_two_batches_accumulated_are_one_batch_of_all_their_examples(tmp_path: Path) -> None:
    # An epsilon that outweighs the gradient makes Adam's step follow the gradient's size: with the usual one it
    # follows the sign alone, which hides a wrong scale and turns rounding noise into whole steps.
    adam = AdamConfig(rate=1.0, epsilon=1.0)
    lengths = PAIRS.target.lengths
    small, large = [int(np.argmin(lengths))], np.argsort(-lengths)[:5].tolist()
    assert lengths[small].sum() * 5 < lengths[large].sum(), "else averaging averages would pass too"
    found = {}
    for name, batches, accumulate in (("together", [small + large], 1), ("accumulated", [small, large], 2)):
        config = SETTINGS.model_copy(
            update={
                "steps": 1,
                "accumulate": accumulate,
                "adam": adam,
                "warmup": 0,
                "clip": 1e9,
                "average": 1,
                "precision": "float32",
            }
        )
        task = replace(work(config, dropout=0.0), sampler=Fixed(batches))
        before = weights_of(task.model)
        run(task, tmp_path / name, config)
        found[name] = weights_of(task.model)
        moved = max(float((found[name][weight] - before[weight]).abs().max()) for weight in before)
        assert moved > 1e-3
    for name, weight in found["together"].items():
        torch.testing.assert_close(found["accumulated"][name], weight, atol=1e-6, rtol=0)
    one, other = (metrics(tmp_path / name)[0] for name in found)
    assert one["loss"] == pytest.approx(other["loss"], rel=1e-5)
    assert one["norm"] == pytest.approx(other["norm"], rel=1e-4)


def test_gradients_are_clipped_and_rates_scheduled(tmp_path: Path) -> None:
    config = SETTINGS.model_copy(
        update={"steps": 10, "validate_every": 10, "clip": 1e-3, "adam": AdamConfig(rate=0.5, epsilon=1.0)}
    )
    task = work(config)
    before = weights_of(task.model)
    run(task, tmp_path, config)
    entry = metrics(tmp_path)[0]
    assert entry["step"] == 10
    assert entry["rate"] == pytest.approx(0.5 * linear_to_zero(10, 3, 10))
    assert entry["norm"] > 1e-3, "the norm before clipping is what is logged"
    # With this epsilon a step is at most rate x gradient (nearly), so ten clipped ones go no further than this.
    moved = math.sqrt(
        sum(float((weight - before[name]).square().sum()) for name, weight in weights_of(task.model).items())
    )
    assert 0 < moved <= 10 * 0.5 * 1e-3


# What can go wrong, and how it ends


@dataclass(frozen=True)
class Spoilt(SequenceObjective):
    """Becomes NaN where a certain example stands first."""

    first: int = -1

    def __call__(self, model: nn.Module, batch: SequenceBatch) -> Losses:
        losses = super().__call__(model, batch)
        if not model.training or batch.indices[0] != self.first:
            return losses
        return {name: (total * float("nan"), count) for name, (total, count) in losses.items()}


def test_a_loss_that_is_not_a_number_stops_and_the_last_checkpoint_is_kept(
    uninterrupted: Finished, tmp_path: Path
) -> None:
    seventh = list(zip(range(7), Sampler(*PAIRS.sizes(), budget=64, seed=1), strict=False))[-1][1]
    task = replace(work(), objective=Spoilt(SETTINGS.smoothing, first=int(seventh[0])))
    with pytest.raises(UserError) as caught:
        run(task, tmp_path)
    spoilt = BatchParts(task.model, task.objective).split(seventh)[0]
    message = str(caught.value)
    assert message.startswith("step 7: the loss is nan ")
    assert f"with {len(spoilt)} pairs, the first number {seventh[0]}" in message
    assert str(tmp_path) in message
    assert "\n" not in message
    # What is kept is what an untroubled run had at that step, and training can go on from it.
    (kept,) = checkpoints(tmp_path / "checkpoints")
    assert kept.name == "step-00000004"
    assert all(weight.isfinite().all() for weight in read_checkpoint(kept).weights.values())
    again = work()
    assert_ended_as(uninterrupted, tmp_path, again, run(again, tmp_path, resume=True))


def test_an_infinite_gradient_stops_too_and_leaves_the_weights_alone(tmp_path: Path) -> None:
    task = work()
    before = weights_of(task.model)
    task.model.decoder.head.weight.register_hook(lambda gradient: gradient * float("inf"))
    with pytest.raises(UserError, match=r"step 1: the gradient is (nan|inf) .* with \d+ pairs"):
        run(task, tmp_path)
    assert_same_weights(weights_of(task.model), before)


def test_a_judge_that_is_no_figure_is_refused_with_those_there_are(tmp_path: Path) -> None:
    config = SETTINGS.model_copy(update={"select_by": "blue", "validate_every": 1})
    with pytest.raises(UserError, match=r"train.select_by is 'blue', but the validation figures are loss"):
        run(work(config), tmp_path, config)


# How it ends well


class Figures:
    """A validation that says what it is told to, one figure after the other, then the last one again."""

    def __init__(self, *figures: float) -> None:
        self.left = list(figures)

    def __call__(self, model: nn.Module) -> dict[str, float]:
        return {"bleu": self.left.pop(0) if len(self.left) > 1 else self.left[0]}


JUDGED = SETTINGS.model_copy(update={"select_by": "bleu", "steps": 9, "validate_every": 1, "average": 3})


def test_early_stopping_stops_after_so_many_validations_without_a_better_figure(tmp_path: Path) -> None:
    config = JUDGED.model_copy(update={"patience": 2})
    # Better at 1, 2 and 4; at 3 and then at 5 and 6 not.
    outcome = run(work(config, validate=Figures(1, 5, 4, 6, 6, 3, 99)), tmp_path, config)
    assert outcome.finished
    assert outcome.step == 6


def test_patience_is_remembered_across_an_interruption(tmp_path: Path) -> None:
    config = JUDGED.model_copy(update={"patience": 2})
    stop = Trouble(3, lambda: signal.raise_signal(signal.SIGINT))
    assert not run(replace(work(config, validate=Figures(1, 5, 4)), sampler=stop), tmp_path, config).finished
    assert run(work(config, validate=Figures(4)), tmp_path, config, resume=True).step == 4


def test_without_patience_training_goes_to_the_end(tmp_path: Path) -> None:
    assert run(work(JUDGED, validate=Figures(9, 1)), tmp_path, JUDGED).step == 9


def test_the_average_is_the_mean_of_the_last_checkpoints_and_is_kept_when_it_is_best(tmp_path: Path) -> None:
    # Nine validations, then the one of the average.
    task = work(JUDGED, validate=Figures(*range(9), 50))
    outcome = run(task, tmp_path, JUDGED)
    assert outcome.scores == {"bleu": 50}
    assert "average of 3" in outcome.chosen
    assert "7 to 9" in outcome.chosen
    kept = [read_weights(tmp_path / "checkpoints" / f"step-{step:08d}") for step in (7, 8, 9)]
    assert not torch.equal(kept[0]["decoder.head.weight"], kept[1]["decoder.head.weight"])
    found = weights_of(task.model)
    for name, weight in found.items():
        torch.testing.assert_close(weight, torch.stack([weights[name] for weights in kept]).mean(0))
    assert_same_weights(found, average([tmp_path / "checkpoints" / f"step-{step:08d}" for step in (7, 8, 9)]))


def test_the_best_checkpoint_is_kept_when_it_beats_the_average(tmp_path: Path) -> None:
    # Best at step 2, long before the last three.
    task = work(JUDGED, validate=Figures(1, 60, 3, 4, 5, 6, 7, 8, 9, 50, 60))
    outcome = run(task, tmp_path, JUDGED)
    assert outcome.chosen == "the checkpoint of step 2"
    assert outcome.scores == {"bleu": 60}
    assert_same_weights(weights_of(task.model), read_weights(tmp_path / "checkpoints" / "step-00000002"))


def test_a_judge_with_a_minus_prefers_less(tmp_path: Path) -> None:
    config = JUDGED.model_copy(update={"select_by": "-bleu"})
    task = work(config, validate=Figures(9, 2, 3, 4, 5, 6, 7, 8, 9, 50, 2))
    assert run(task, tmp_path, config).chosen == "the checkpoint of step 2"


def test_old_checkpoints_are_thinned_but_never_the_two_newest(tmp_path: Path) -> None:
    run(work(JUDGED, validate=Figures(1, 60, 3, 4, 5, 6, 7, 8, 9, 50, 60)), tmp_path, JUDGED)
    found = {path.name: (path / "training.safetensors").exists() for path in checkpoints(tmp_path / "checkpoints")}
    assert found == {
        "step-00000002": False,  # the best: its weights
        "step-00000007": False,  # for the average: its weights
        "step-00000008": True,
        "step-00000009": True,
    }
