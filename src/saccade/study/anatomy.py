"""What attention changed, measured: recurrent, convolutional and self-attention layers over growing lengths.

Vaswani et al. 2017, table 1, says what to expect; here each figure is taken on this machine and printed beside it.
"""

import math
import multiprocessing
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
from torch import Tensor, nn

from saccade.arch.encoder_decoder import StackConfig
from saccade.models.blocks import build_blocks
from saccade.models.transformer import begin_blocks
from saccade.native.allocator import most_memory
from saccade.nn.conv import GatedConvolution
from saccade.nn.multihead import SelfAttention
from saccade.nn.recurrent import GruCell, LstmCell, unroll
from saccade.sites import Site
from saccade.study.plots import Line, Panel, draw_panels, markdown_table

Say = Callable[[str], None]
WIDTH, HEADS, KERNEL = 64, 4, 3
LENGTHS = tuple(2**power for power in range(6, 14))
"""64 … 8192"""
LEAST_SECONDS = 0.3


class Recurrent(nn.Module):
    """A GRU over the whole sequence."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = GruCell(WIDTH, WIDTH)

    def forward(self, x_BTD: Tensor) -> Tensor:
        first = (x_BTD.new_zeros(len(x_BTD), WIDTH),)
        return unroll(self.cell, self.cell.input(x_BTD), first)[0]


class Convolution(nn.Module):
    """A gated convolution; the ends are padded."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = GatedConvolution(WIDTH, KERNEL, dropout=0.0)

    def forward(self, x_BTD: Tensor) -> Tensor:
        result: Tensor = self.layer(nn.functional.pad(x_BTD, (0, 0, KERNEL // 2, KERNEL // 2)))
        return result


@dataclass(frozen=True)
class Kind:
    build: Callable[[], nn.Module]
    operations: str
    """What theory says of one layer."""
    count: Callable[[int], float]
    """The same as a number, for n positions."""
    path: str
    """How far apart two positions are, at most."""


KINDS = {
    "recurrent": Kind(Recurrent, "n·d²", lambda n: n * WIDTH**2, "n"),
    "convolution": Kind(Convolution, "k·n·d²", lambda n: KERNEL * n * WIDTH**2, "log_k n, dilated"),
    "self-attention": Kind(partial(SelfAttention, WIDTH, HEADS), "n²·d", lambda n: n**2 * WIDTH, "1"),
}


@dataclass(frozen=True)
class Cost:
    """One layer at one length."""

    length: int
    forward: float
    """Seconds."""
    backward: float
    peak: int
    """Bytes above what the process needed before."""
    calls: int
    """Sequential calls."""


def write_anatomy(folder: Path, say: Say) -> Path:
    """anatomy.md with its pictures."""
    costs = {}
    for name in KINDS:
        say(f"{name}: lengths {LENGTHS[0]} to {LENGTHS[-1]} …")
        costs[name] = _apart(name)
    say("gradients, paths, softmax …")
    gradients, paths = gradient_reach(), path_lengths()
    entropy, slope = saturation()
    say("twelve blocks, post-norm and pre-norm …")
    stacks = train_stacks()
    _draw(folder, costs, gradients, entropy, slope, stacks)
    path = folder / "anatomy.md"
    path.write_text("\n".join(_report(costs, gradients, paths, entropy, slope, stacks)), encoding="utf-8")
    return path


def _apart(name: str) -> list[Cost]:
    """Measured in a separate process: memory of an earlier layer would hide what the next layer needs."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        return pool.apply(measure_layer, (name, LENGTHS))


def measure_layer(name: str, lengths: tuple[int, ...]) -> list[Cost]:
    torch.manual_seed(0)
    layer = KINDS[name].build()
    list(_runs(layer, lengths[0]))  # first calls start threads and load code
    before, costs = most_memory(), []
    for length in lengths:
        forwards, backwards, calls = zip(*_runs(layer, length), strict=True)
        cost = Cost(length, statistics.median(forwards), statistics.median(backwards), most_memory() - before, calls[0])
        costs.append(cost)
    return costs


def _runs(layer: nn.Module, length: int) -> Iterator[tuple[float, float, int]]:
    """Forward and backward seconds, and the calls that waited for each other, until there are enough of them."""
    x_BTD = torch.randn(1, length, WIDTH, requires_grad=True)
    waited = 0

    def count(*_: object) -> None:
        nonlocal waited
        waited += 1

    cell = getattr(layer, "cell", None)
    handle = (layer if cell is None else cell).register_forward_hook(count)
    spent, number = 0.0, 0
    while number < 3 or (spent < LEAST_SECONDS and number < 50):
        waited, number = 0, number + 1
        began = time.perf_counter()
        y_BTD = layer(x_BTD)
        middle = time.perf_counter()
        y_BTD.sum().backward()
        ended = time.perf_counter()
        spent += ended - began
        yield middle - began, ended - middle, waited
    handle.remove()


# How far a gradient reaches


REACH = 256
"""Positions over which gradients are followed back."""


def gradient_reach() -> dict[str, Line]:
    """The norm of d(last output)/d(input at t), by how far t lies before the end."""
    torch.manual_seed(0)
    layers: dict[str, Callable[[Tensor], Tensor]] = {
        "tanh, W scaled by 0.9": _tanh_network(0.9),
        "tanh, W scaled by 1.1": _tanh_network(1.1),
        "GRU": _recurrent(GruCell(WIDTH, WIDTH)),
        "LSTM": _recurrent(LstmCell(WIDTH, WIDTH)),
        f"convolution, k = {KERNEL}": Convolution(),
        "self-attention": SelfAttention(WIDTH, HEADS),
    }
    reach: dict[str, Line] = {}
    for name, layer in layers.items():
        x_BTD = (0.1 * torch.randn(1, REACH, WIDTH)).requires_grad_()
        (gradient_BTD,) = torch.autograd.grad(layer(x_BTD)[0, -1] @ torch.randn(WIDTH), x_BTD)
        norms = gradient_BTD[0].norm(dim=-1).flip(0)
        reach[name] = [(float(back), float(norm)) for back, norm in enumerate(norms) if norm > 0]
    return reach


def _recurrent(cell: GruCell | LstmCell) -> Callable[[Tensor], Tensor]:
    return lambda x: unroll(cell, cell.input(x), (x.new_zeros(len(x), WIDTH),) * cell.carries)[0]


def _tanh_network(size: float) -> Callable[[Tensor], Tensor]:
    """Elman's network, its recurrent matrix orthogonal times `size`."""
    weight = nn.init.orthogonal_(torch.empty(WIDTH, WIDTH)) * size

    def run(x_BTD: Tensor) -> Tensor:
        state, states = x_BTD.new_zeros(len(x_BTD), WIDTH), []
        for x_BD in x_BTD.unbind(dim=1):
            state = torch.tanh(1e-3 * x_BD + state @ weight.T)  # small inputs: tanh stays near its steep middle
            states.append(state)
        return torch.stack(states, dim=1)

    return run


def path_lengths() -> dict[str, list[tuple[int, int]]]:
    """Layers, or steps of one layer, until the last output depends on the first input."""
    found: dict[str, list[tuple[int, int]]] = {"recurrent": [], "convolution": [], "dilated": [], "self-attention": []}
    for length in (64, 512, 4096):
        found["recurrent"].append((length, length))
        found["convolution"].append((length, _layers_needed(length, dilated=False)))
        found["dilated"].append((length, _layers_needed(length, dilated=True)))
        found["self-attention"].append((length, 1))
    return found


def _layers_needed(length: int, *, dilated: bool) -> int:
    """Causal convolutions of one channel, added until position 0 reaches the end."""
    reached_T = torch.zeros(length, dtype=torch.bool)
    reached_T[-1] = True
    layers = 0
    while not reached_T[0]:
        step = KERNEL**layers if dilated else 1
        shifted = [reached_T]
        for back in range(1, KERNEL):
            by = min(back * step, length)
            shifted.append(torch.cat([reached_T[by:], torch.zeros(by, dtype=torch.bool)]))
        reached_T = torch.stack(shifted).any(dim=0)
        layers += 1
    return layers


# Softmax with and without the scale


def saturation() -> tuple[dict[str, Line], dict[str, Line]]:
    """Mean entropy of the weights over 64 keys, and the size of softmax's gradient, against the width d."""
    torch.manual_seed(0)
    entropy: dict[str, list[tuple[float, float]]] = {"q·k": [], "q·k / √d": []}
    slope: dict[str, list[tuple[float, float]]] = {"q·k": [], "q·k / √d": []}
    for power in range(11):
        width = 2**power
        q, k = torch.randn(200, width), torch.randn(64, width)
        for name, scale in (("q·k", 1.0), ("q·k / √d", 1 / math.sqrt(width))):
            weights = (q @ k.T * scale).softmax(dim=-1)
            bits = -(weights * weights.clamp(min=1e-30).log2()).sum(-1).mean()
            jacobian = torch.diag_embed(weights) - weights[:, :, None] * weights[:, None, :]
            entropy[name].append((width, float(bits)))
            slope[name].append((width, float(jacobian.flatten(1).norm(dim=1).mean())))
    return dict(entropy), dict(slope)


# Twelve blocks


BLOCKS, STEPS, PEAK_RATE, WARM_UP = 12, 300, 3e-3, 100


def train_stacks() -> dict[str, Line]:
    """Training loss of a deep stack that sorts, post-norm and pre-norm, with and without warm-up."""
    curves = {}
    for norm in ("post", "pre"):
        for warm in (True, False):
            name = f"{norm}-norm, {'with' if warm else 'no'} warm-up"
            curves[name] = _train_stack(norm, warm=warm)
    return curves


def _train_stack(norm: str, *, warm: bool) -> Line:
    torch.manual_seed(0)
    symbols, length = 16, 16
    config = StackConfig.read(
        {"layers": BLOCKS, "width": 32, "heads": 2, "feedforward": 64, "order": norm, "dropout": 0.0}, where="anatomy"
    )
    embed, stack, head = (
        nn.Embedding(symbols, 32),
        begin_blocks(build_blocks(config, Site.encoder())),
        nn.Linear(32, symbols),
    )
    place = nn.Parameter(torch.randn(length, 32))
    weights = [*embed.parameters(), *stack.parameters(), *head.parameters(), place]
    optimizer = torch.optim.Adam(weights, lr=PEAK_RATE, betas=(0.9, 0.98))
    curve, mean = [], math.log(symbols)
    for step in range(1, STEPS + 1):
        tokens_BT = torch.randint(symbols, (32, length))
        x = embed(tokens_BT) + place
        for block in stack:
            x = block(x, None)
        loss = nn.functional.cross_entropy(head(x).flatten(0, 1), tokens_BT.sort(dim=1).values.flatten())
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        for group in optimizer.param_groups:
            group["lr"] = PEAK_RATE * min(1.0, step / WARM_UP) if warm else PEAK_RATE
        optimizer.step()
        mean += 0.1 * (loss.item() - mean)
        if step % 10 == 0:
            curve.append((float(step), mean))
    return curve


# The report


def _draw(
    folder: Path,
    costs: dict[str, list[Cost]],
    gradients: dict[str, Line],
    entropy: dict[str, Line],
    slope: dict[str, Line],
    stacks: dict[str, Line],
) -> None:
    both = (True, True)
    seconds = {name: [(c.length, c.forward + c.backward) for c in found] for name, found in costs.items()}
    # Below a quarter of a megabyte the figure shows only the size of memory pages.
    memory = {name: [(c.length, c.peak / 2**20) for c in found if c.peak > 2**18] for name, found in costs.items()}
    draw_panels(
        [
            Panel("time, forward and backward", "length n", seconds, "seconds", both),
            Panel("peak memory", "length n", memory, "MB", both),
            Panel("gradient reaching back", "positions before the end", gradients, "norm", (False, True)),
            Panel("softmax over 64 keys", "width d", entropy, "entropy, bits", (True, False)),
            Panel("its gradient", "width d", slope, "norm of the Jacobian", (True, True)),
            Panel(f"{BLOCKS} blocks, rate {PEAK_RATE:g}", "step", stacks, "training loss"),
        ],
        folder / "anatomy.png",
    )


def _report(
    costs: dict[str, list[Cost]],
    gradients: dict[str, Line],
    paths: dict[str, list[tuple[int, int]]],
    entropy: dict[str, Line],
    slope: dict[str, Line],
    stacks: dict[str, Line],
) -> Iterator[str]:
    yield "# Anatomy\n"
    yield (
        f"One layer, width d = {WIDTH}, a batch of one sequence, {torch.get_num_threads()} threads, fp32. "
        f"Self-attention has {HEADS} heads and never holds an n × n table; the convolution sees k = {KERNEL} "
        "neighbours.\n"
    )
    header = ["layer", "n", "operations, theory", "forward ms", "backward ms", "peak MB", "steps in sequence"]
    rows = []
    for name, found in costs.items():
        for cost in found:
            theory = f"{KINDS[name].operations} = {KINDS[name].count(cost.length):.3g}"
            times = [f"{1e3 * seconds:.2f}" for seconds in (cost.forward, cost.backward)]
            rows.append([name, f"{cost.length:,}", theory, *times, f"{cost.peak / 2**20:.0f}", f"{cost.calls:,}"])
    yield markdown_table(header, rows)
    yield "How time grows when the length doubles, from the last two lengths (theory: 2, 2, and 4 for the n² part):\n"
    growth = [[name, f"{_total(found[-1]) / _total(found[-2]):.2f}"] for name, found in costs.items()]
    yield markdown_table(["layer", "time(2n) / time(n)"], growth)
    yield "Layers, or steps of one layer, until the last output feels the first input:\n"
    lengths = [f"n = {length:,}" for length, _ in paths["recurrent"]]
    expected = {"recurrent": "n", "convolution": "n / (k-1)", "dilated": "log_k n", "self-attention": "1"}
    reach = [[name, expected[name], *(f"{count:,}" for _, count in found)] for name, found in paths.items()]
    yield markdown_table(["layer", "theory", *lengths], reach)
    yield "![time, memory, gradients, softmax, deep stacks](anatomy.png)\n"
    yield "Gradient of the last output at the input so many positions before (empty: none reaches it):\n"
    places = (0, 16, 64, 255)
    rows = [[name, *(_at(line, place) for place in places)] for name, line in gradients.items()]
    yield markdown_table(["layer", *map(str, places)], rows)
    yield "Softmax over 64 keys, q and k of unit variance: without the scale it saturates as d grows.\n"
    rows = [
        [str(int(width)), f"{plain:.2f}", f"{scaled:.2f}", f"{steep:.4f}", f"{kept:.4f}"]
        for (width, plain), (_, scaled), (_, steep), (_, kept) in zip(
            entropy["q·k"], entropy["q·k / √d"], slope["q·k"], slope["q·k / √d"], strict=True
        )
    ]
    yield markdown_table(["d", "entropy, q·k", "entropy, scaled", "gradient, q·k", "gradient, scaled"], rows)
    yield f"{BLOCKS} blocks that learn to sort, {STEPS} steps at a peak rate of {PEAK_RATE:g}:\n"
    yield markdown_table(["stack", "loss at the end"], [[name, f"{line[-1][1]:.3f}"] for name, line in stacks.items()])


def _total(cost: Cost) -> float:
    return cost.forward + cost.backward


def _at(line: Line, place: int) -> str:
    return next((f"{norm:.1e}" for back, norm in line if back == place), "")
