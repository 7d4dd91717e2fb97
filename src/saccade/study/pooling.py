"""Pooling as a picture: a curve fitted by averages, without a query and with sharper and sharper ones."""

from pathlib import Path

import torch
from torch import Tensor

from saccade.nn.pooling import AttentionPooling, Gaussian, average_pool, kernel_regression
from saccade.study.plots import Line, Panel, draw_panels

POINTS, NOISE = 50, 0.5


def truth(x: Tensor) -> Tensor:
    return 2 * torch.sin(x) + x**0.8


def write_pooling(folder: Path) -> Path:
    """pooling.png: noisy points, their average, kernel regression, and a kernel whose sharpness was learnt."""
    torch.manual_seed(0)
    x_N = torch.rand(POINTS).sort().values * 5
    y_N = truth(x_N) + NOISE * torch.randn(POINTS)
    at_Q = torch.linspace(0, 5, 101)
    learnt = learn_sharpness(x_N, y_N)
    average = average_pool(y_N[None, :, None]).expand(len(at_Q), 1)[:, 0]
    fits = {
        "average pooling: no query": average,
        "attention pooling, sharpness 1": kernel_regression(x_N, y_N, at_Q, 1.0),
        f"attention pooling, learnt: {learnt:.1f}": kernel_regression(x_N, y_N, at_Q, learnt),
    }
    points = Panel(
        "one value for every query, and one for each",
        "query",
        {name: _line(at_Q, fit) for name, fit in fits.items()},
        "pooled value",
        faint={"truth": _line(at_Q, truth(at_Q))},
        dots={"noisy points": _line(x_N, y_N)},
    )
    errors = Panel(
        "error against the truth, by sharpness",
        "sharpness",
        {"attention pooling": [(w, _error(x_N, y_N, w)) for w in (0.25, 0.5, 1, 2, 4, 8, 16, 32)]},
        "mean squared error",
        (True, False),
        faint={"average pooling": [(w, float(((average - truth(at_Q)) ** 2).mean())) for w in (0.25, 32)]},
    )
    return draw_panels([points, errors], folder / "pooling.png")


def learn_sharpness(x_N: Tensor, y_N: Tensor, steps: int = 200) -> float:
    """Each point is predicted from all the others; the kernel's width is what is learnt."""
    pool = AttentionPooling(Gaussian(1.0))
    optimizer = torch.optim.Adam(pool.parameters(), lr=0.1)
    others = ~torch.eye(len(x_N), dtype=torch.bool)
    keys, values = (part.expand(len(x_N), -1)[..., None] for part in (x_N, y_N))
    for _ in range(steps):
        found = pool(x_N[:, None, None], keys, values, mask_BS=others)[:, 0, 0]
        loss = ((found - y_N) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return float(pool.score.sharpness.detach().abs())  # type: ignore[operator]


def _error(x_N: Tensor, y_N: Tensor, sharpness: float) -> float:
    at_Q = torch.linspace(0, 5, 101)
    return float(((kernel_regression(x_N, y_N, at_Q, sharpness) - truth(at_Q)) ** 2).mean())


def _line(x: Tensor, y: Tensor) -> Line:
    return list(zip(x.tolist(), y.tolist(), strict=True))
