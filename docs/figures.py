"""Draws the figures of the lectures and of `docs/explain.md`: `python docs/figures.py -o docs/pictures`.

All of them come from the bundled models or from plain formulas, without PyTorch. Those of models that are not bundled
are drawn where a model is named:

    python docs/figures.py -o OUT --en-fr runs/en-fr
    python docs/figures.py -o OUT --captioner runs/captions --image photo.jpg
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
from PIL import Image

import saccade
from saccade.explaining.drawing import curve_shapes, explanation_shapes
from saccade.explaining.explain import explain
from saccade.look.head_grid import draw_heads
from saccade.look.matrix import Matrix
from saccade.look.picture import draw, write_shapes
from saccade.look.plot import Plot, Series
from saccade.look.rollout import rolled_out
from saccade.look.shapes import Shape
from saccade.runtime.layers import attend, sinusoids, softmax
from saccade.sites import Site

POSITIONS, WIDTH = 64, 128
ENGLISH = "The agreement on the European Economic Area was signed in August 1992."
FRENCH = "L'accord sur la zone économique européenne a été signé en août 1992."
SENTENCE = "Yesterday I saw a very large black cat in the garden of my neighbour."


class Drawn(Protocol):
    """A part of a figure."""

    @property
    def shape(self) -> tuple[int, int]: ...

    def shapes(self, x: int = 0, y: int = 0) -> "Sequence[Shape]": ...


def side_by_side(parts: Sequence[Drawn], path: Path) -> Path:
    shapes: list[Shape] = []
    x = 0
    for part in parts:
        shapes += part.shapes(x, 0)
        x += part.shape[0]
    return write_shapes(shapes, x, max(part.shape[1] for part in parts), path)


def positions(folder: Path) -> Path:
    """The matrix of sinusoids in both layouts, and what its rows have to do with each other."""
    table = sinusoids(POSITIONS, WIDTH, "interleaved").astype(np.float64)
    dots = table @ table.T
    names = {"across": "channel", "down": "position"}
    parts: list[Drawn] = [
        Matrix("positional encoding, sine and cosine in turn", table, **names),
        Matrix("the same, first sines, then cosines", sinusoids(POSITIONS, WIDTH, "halves"), **names),
        Matrix("dot products of positions", dots, across="position", down="position"),
    ]
    return side_by_side(parts, folder / "positions.png")


def distances(folder: Path) -> Path:
    """Dot products fall with distance, and depend on nothing else."""
    far = np.arange(POSITIONS)
    lines = []
    for width in (32, 128, 512):
        table = sinusoids(2 * POSITIONS, width, "interleaved").astype(np.float64)
        products = np.stack([(table[:POSITIONS] * table[d : d + POSITIONS]).sum(axis=1) / (width / 2) for d in far])
        lines.append(Series(f"width {width}", far, products.mean(axis=1), products.std(axis=1)))
    note = "bands: two standard deviations over where the first position stands; there is none"
    plot = Plot("dot product of two positions, by their distance", "distance", "share of the largest", lines, note)
    return side_by_side([plot], folder / "distances.png")


def equivariance(folder: Path) -> Path:
    """Shuffled inputs give shuffled outputs; positions end that."""
    random = np.random.default_rng(0)
    x_TD = random.normal(size=(8, 12)).astype(np.float32)
    order = random.permutation(8)
    where = sinusoids(8, 12, "interleaved")

    def attention(inputs: np.ndarray) -> np.ndarray:
        q = inputs[None, None]
        return attend("figure", Site.encoder(), q, q, q)[0, 0]

    names = {"across": "channel", "down": "position", "widest": 260, "top": 2.0}
    off = float(np.abs(attention(x_TD[order]) - attention(x_TD)[order]).max())
    placed = float(np.abs(attention(x_TD[order] + where) - attention(x_TD + where)[order]).max())
    parts: list[Drawn] = [
        Matrix("f(X), its rows shuffled", attention(x_TD)[order], **names),
        Matrix("f(X shuffled)", attention(x_TD[order]), **names),
        Matrix(f"difference: at most {off:.0e}", attention(x_TD[order]) - attention(x_TD)[order], **names),
        Matrix(
            f"with positions: up to {placed:.1f}",
            attention(x_TD[order] + where) - attention(x_TD + where)[order],
            **names,
        ),
    ]
    return side_by_side(parts, folder / "equivariance.png")


def causal(folder: Path) -> Path:
    """Scores, what the mask leaves of them, and weights; and which outputs a changed token changes."""
    random = np.random.default_rng(1)
    words = ["<s>", "the", "cat", "sat", "on", "the", "mat"]
    x_TD = random.normal(size=(7, 16)).astype(np.float32)
    allowed = np.tri(7, dtype=bool)
    q_TD, k_TD = (x_TD @ random.normal(size=(16, 16)).astype(np.float32) / 4 for _ in range(2))
    scores = q_TD @ k_TD.T / 4
    names = {"across": "looked at", "down": "who looks", "labels_across": words, "labels_down": words, "widest": 300}

    def outputs(inputs: np.ndarray) -> np.ndarray:
        x = inputs[None, None]
        return attend("figure", Site.decoder(), x, x, x, allowed)[0, 0]

    changed = np.zeros((7, 7))
    for place in range(7):
        other = x_TD.copy()
        other[place] += 1
        changed[:, place] = np.abs(outputs(other) - outputs(x_TD)).max(axis=1)
    weights = np.where(allowed, softmax(np.where(allowed, scores, -1e9)), 0)
    parts: list[Drawn] = [
        Matrix("causal mask: who may look at what", allowed.astype(float), **names),
        Matrix("weights: each row sums to 1", weights, **names),
        Matrix("what changes if a token changes", changed, **(names | {"across": "changed", "down": "output"})),
    ]
    return side_by_side(parts, folder / "causal.png")


def bundled(folder: Path) -> list[Path]:
    """Attention of the bundled translator, and explanations of what it writes."""
    translator = saccade.load("en-es")
    answer = translator(SENTENCE)
    found = {
        one: explain(translator, SENTENCE, method=one, word=6)  # type: ignore[arg-type]
        for one in ("rise", "occlusion", "attention", "rollout", "random")
    }
    return [
        draw_heads([answer.looks], [""], folder / "every-head.png"),
        draw([rolled_out(answer.looks)], folder / "rollout.png"),
        write_shapes(*explanation_shapes(found["rise"]), folder / "explained.png"),
        write_shapes(
            *curve_shapes({name: one.curves() for name, one in found.items()}), folder / "explained-curves.png"
        ),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, default=Path("docs/pictures"))
    parser.add_argument("--en-fr", help="a translator from English into French")
    parser.add_argument("--captioner", help="a model that captions")
    parser.add_argument("--image", type=Path, help="what is captioned")
    asked = parser.parse_args()
    asked.output.mkdir(parents=True, exist_ok=True)
    for figure in (positions, distances, equivariance, causal):
        print(figure(asked.output))
    print(*bundled(asked.output), sep="\n")
    if asked.en_fr:
        given = saccade.load(asked.en_fr).given(ENGLISH, FRENCH)
        print(given.looks.picture(asked.output / "french.png"))
    if asked.captioner and asked.image:
        caption = saccade.load(asked.captioner)(asked.image)
        print(caption.looks.picture(asked.output / "caption.png", image=Image.open(asked.image)))


if __name__ == "__main__":
    main()
