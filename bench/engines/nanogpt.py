"""A plain loop in the manner of nanoGPT, on the letters of one text; imports nothing of Saccade.

Its published settings for a CPU: no dropout, no biases, random windows, a cosine from 1e-3 to 1e-4, AdamW with decay on
matrices. `python -m bench.engines.nanogpt TEXT --steps N --seed N` prints one line of JSON.
"""

import argparse
import json
import math
import os
import time
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn, optim


@dataclass(frozen=True)
class Plan:
    layers: int = 4
    width: int = 128
    heads: int = 4
    context: int = 64
    batch: int = 12
    """Windows in a batch."""
    steps: int = 2000
    rate: float = 1e-3
    least: float = 1e-4
    """The rate at the end."""
    warmup: int = 100
    betas: tuple[float, float] = (0.9, 0.99)
    decay: float = 0.1
    clip: float = 1.0
    held: float = 0.1
    """The share of the text, its end, that is validated on."""


PLAN = Plan()
ROWS = 128
"""Windows validated at once."""


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.project = nn.Linear(PLAN.width, 3 * PLAN.width, bias=False)
        self.out = nn.Linear(PLAN.width, PLAN.width, bias=False)

    def forward(self, x_BTD: Tensor) -> Tensor:
        rows, length, width = x_BTD.shape
        parts = self.project(x_BTD).split(width, dim=2)
        q, k, v = (part.view(rows, length, PLAN.heads, width // PLAN.heads).transpose(1, 2) for part in parts)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        mixed: Tensor = self.out(y.transpose(1, 2).contiguous().view(rows, length, width))
        return mixed


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm_1, self.norm_2 = (nn.LayerNorm(PLAN.width, bias=False) for _ in range(2))
        self.attention = Attention()
        self.widen = nn.Linear(PLAN.width, 4 * PLAN.width, bias=False)
        self.narrow = nn.Linear(4 * PLAN.width, PLAN.width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm_1(x))
        summed: Tensor = x + self.narrow(F.gelu(self.widen(self.norm_2(x))))
        return summed


class Gpt(nn.Module):
    def __init__(self, vocabulary: int) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, PLAN.width)
        self.positions = nn.Embedding(PLAN.context, PLAN.width)
        self.blocks = nn.ModuleList(Block() for _ in range(PLAN.layers))
        self.norm = nn.LayerNorm(PLAN.width, bias=False)
        self.head = nn.Linear(PLAN.width, vocabulary, bias=False)
        self.head.weight = self.tokens.weight
        for name, weight in self.named_parameters():
            if weight.ndim == 2:
                last = name.endswith(("out.weight", "narrow.weight"))
                nn.init.normal_(weight, std=0.02 / math.sqrt(2 * PLAN.layers) if last else 0.02)

    def forward(self, tokens_BT: Tensor, labels_BT: Tensor) -> Tensor:
        """The mean loss."""
        x = self.tokens(tokens_BT) + self.positions(torch.arange(tokens_BT.shape[1]))
        for block in self.blocks:
            x = block(x)
        logits_BTV = self.head(self.norm(x))
        return F.cross_entropy(logits_BTV.flatten(0, 1), labels_BT.flatten())


def read(path: Path) -> tuple[Tensor, Tensor, int]:
    """The letters as numbers, for training and for validation, and how many different ones there are."""
    text = path.read_text(encoding="utf-8")
    letters = {letter: number for number, letter in enumerate(sorted(set(text)))}
    data = torch.tensor([letters[letter] for letter in text])
    cut = int(len(data) * (1 - PLAN.held))
    return data[:cut], data[cut:], len(letters)


def draw(data: Tensor) -> tuple[Tensor, Tensor]:
    """Random windows, and what follows each of their letters."""
    starts = torch.randint(len(data) - PLAN.context, (PLAN.batch,)).tolist()
    tokens_BT = torch.stack([data[start : start + PLAN.context] for start in starts])
    labels_BT = torch.stack([data[start + 1 : start + 1 + PLAN.context] for start in starts])
    return tokens_BT, labels_BT


def rate_at(step: int, steps: int) -> float:
    """A line up to the peak, then half a cosine down; the first step is 0."""
    if step < PLAN.warmup:
        return PLAN.rate * (step + 1) / (PLAN.warmup + 1)
    done = (step - PLAN.warmup) / max(1, steps - PLAN.warmup)
    return PLAN.least + 0.5 * (1 + math.cos(math.pi * done)) * (PLAN.rate - PLAN.least)


def build_optimizer(model: nn.Module) -> optim.AdamW:
    groups = [
        {"params": [weight for weight in model.parameters() if weight.ndim >= 2], "weight_decay": PLAN.decay},
        {"params": [weight for weight in model.parameters() if weight.ndim < 2], "weight_decay": 0.0},
    ]
    return optim.AdamW(groups, lr=PLAN.rate, betas=PLAN.betas, fused=True)


def train(model: Gpt, data: Tensor, steps: int) -> float:
    """Train, and say how many seconds it took."""
    optimizer = build_optimizer(model)
    model.train()
    began = time.perf_counter()
    for step in range(steps):
        rate = rate_at(step, steps)
        for group in optimizer.param_groups:
            group["lr"] = rate
        loss = model(*draw(data))
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), PLAN.clip)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if not math.isfinite(loss.item()):
            raise SystemExit(f"step {step}: the loss is {loss.item()}")
    return time.perf_counter() - began


def validate(model: Gpt, data: Tensor) -> float:
    """The mean loss of every letter but the first, in windows that do not overlap."""
    model.eval()
    total, letters, whole = 0.0, len(data) - 1, (len(data) - 1) // PLAN.context * PLAN.context
    with torch.inference_mode():
        tokens, labels = (data[first : first + whole].view(-1, PLAN.context) for first in (0, 1))
        pieces = [(tokens[row : row + ROWS], labels[row : row + ROWS]) for row in range(0, len(tokens), ROWS)]
        if whole < letters:  # a last, shorter window
            pieces.append((data[None, whole:-1], data[None, whole + 1 :]))
        for tokens_BT, labels_BT in pieces:
            total += model(tokens_BT, labels_BT).item() * labels_BT.numel()
    return total / letters


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("text", type=Path)
    parser.add_argument("--steps", type=int, default=PLAN.steps)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()

    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", torch.get_num_threads())))
    torch.manual_seed(given.seed)
    training, held, vocabulary = read(given.text)
    model = Gpt(vocabulary)
    seconds = train(model, training, given.steps)
    result = {
        "engine": f"a plain loop as nanoGPT's, torch {torch.__version__}",
        "steps": given.steps,
        "seconds": seconds,
        "loss": validate(model, held),
        "validated": len(held) - 1,
        "parameters": sum(weight.numel() for weight in model.parameters()),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
