"""Scores of predicted classes and numbers, with intervals, and the confusion matrix."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from saccade.errors import UserError
from saccade.evaluate.metrics import Score

BOOTSTRAP, SEED = 1000, 12345
"""Number of bootstrap samples and their seed, as in sacrebleu."""
AT_ONCE = 4_000_000
"""Drawn examples held in memory at a time."""
WIDEST = 8
"""Class names longer than this do not head a column of the table; their numbers do."""


@dataclass(frozen=True)
class Classified:
    """Examples' true classes and the model's, by number."""

    gold: Sequence[int]
    predicted: Sequence[int]
    classes: Sequence[str]
    groups: Sequence[int] | None = None
    """Groups of examples that are resampled together, such as the words of a sentence. Default: each by itself."""

    def __post_init__(self) -> None:
        groups = len(self.gold) if self.groups is None else len(self.groups)
        if not len(self.gold) == len(self.predicted) == groups > 0:
            raise ValueError(f"{len(self.gold)} true classes, {len(self.predicted)} predicted, {groups} groups")

    @property
    def confusion_GP(self) -> np.ndarray:
        """How often each true class (row) was taken for each class (column)."""
        count = len(self.classes)
        return np.bincount(self._cells(), minlength=count * count).reshape(count, count)

    def _cells(self) -> np.ndarray:
        """Each example's place in the confusion matrix, read row by row."""
        return np.asarray(np.asarray(self.gold) * len(self.classes) + np.asarray(self.predicted))


@dataclass(frozen=True)
class _Counts:
    """Of R drawings and C classes; all that the figures need of a confusion matrix."""

    right_RC: np.ndarray
    gold_RC: np.ndarray
    predicted_RC: np.ndarray


def accuracy(answers: Classified, *, bootstrap: int = BOOTSTRAP) -> Score:
    """The share of right answers, in percent."""
    return _score("accuracy", answers, lambda counts: 100 * _accuracy(counts), "", bootstrap)


def macro_f1(answers: Classified, *, bootstrap: int = BOOTSTRAP) -> Score:
    """The mean F1 of the classes that are true or predicted somewhere, in percent."""
    return _score("macro F1", answers, lambda counts: 100 * _macro(counts), "|average:macro", bootstrap)


def class_f1(answers: Classified, name: str, *, bootstrap: int = BOOTSTRAP) -> Score:
    """F1 of one class, in percent; 0 where it is neither true nor predicted."""
    place = list(answers.classes).index(name)
    return _score(f"F1 of {name!r}", answers, lambda counts: 100 * _f1(counts)[:, place], "", bootstrap)


def matthews(answers: Classified, *, bootstrap: int = BOOTSTRAP) -> Score:
    """Matthews correlation of any number of classes, from -1 to 1; 0 where all answers or all truths are one class."""
    return _score("Matthews", answers, _matthews, "", bootstrap, digits=4)


def class_scores(answers: Classified, *, bootstrap: int = BOOTSTRAP) -> list[Score]:
    """All of them; of two classes also the F1 of the second, which is usually the 1, the yes, the positive one."""
    of_one = [class_f1(answers, answers.classes[1], bootstrap=bootstrap)] if len(answers.classes) == 2 else []
    scores = [metric(answers, bootstrap=bootstrap) for metric in (accuracy, macro_f1, matthews)]
    return [*scores[:2], *of_one, *scores[2:]]


def pearson(gold: Sequence[float], predicted: Sequence[float], *, bootstrap: int = BOOTSTRAP) -> Score:
    """Pearson correlation, from -1 to 1; 0 where either side is constant."""
    return _correlation("Pearson", gold, predicted, lambda values_N, _: values_N[None], bootstrap)


def spearman(gold: Sequence[float], predicted: Sequence[float], *, bootstrap: int = BOOTSTRAP) -> Score:
    """Pearson correlation of the ranks, equal values sharing their mean rank; 0 where either side is constant."""
    return _correlation("Spearman", gold, predicted, _ranks, bootstrap)


def number_scores(gold: Sequence[float], predicted: Sequence[float], *, bootstrap: int = BOOTSTRAP) -> list[Score]:
    return [metric(gold, predicted, bootstrap=bootstrap) for metric in (pearson, spearman)]


def _score(
    name: str,
    answers: Classified,
    figure: Callable[[_Counts], np.ndarray],
    how: str,
    bootstrap: int,
    digits: int = 2,
) -> Score:
    cells_K, counts_K = np.unique(answers._cells(), return_counts=True)
    value = float(figure(_counts(counts_K[None], cells_K, answers))[0])
    drawn = [figure(counts) for counts in _drawn_counts(answers, bootstrap)] if bootstrap > 1 else []
    of = "" if answers.groups is None else f"|groups:{len(set(answers.groups))}"
    signature = f"examples:{len(answers.gold)}{of}|classes:{len(answers.classes)}{how}"
    return Score(name, value, _half(drawn), signature + _drawing(bootstrap), digits)


def _drawing(bootstrap: int) -> str:
    return f"|bs:{bootstrap}|seed:{SEED}" if bootstrap > 1 else ""


def _half(drawn: list[np.ndarray]) -> float | None:
    """Half of the central 95 % interval of the bootstrap samples."""
    if not drawn:
        return None
    low, high = np.percentile(np.concatenate(drawn), [2.5, 97.5])
    return float(high - low) / 2


def _weights(count: int, bootstrap: int) -> Iterator[np.ndarray]:
    """weights_RN: how often each example is in a drawing of as many with replacement; some drawings at a time."""
    random = np.random.default_rng(SEED)
    for rows in _blocks(bootstrap, count):
        drawn_RN = random.integers(count, size=(rows, count))
        drawn_RN += count * np.arange(len(drawn_RN))[:, None]
        yield np.bincount(drawn_RN.ravel(), minlength=drawn_RN.size).reshape(drawn_RN.shape)


def _blocks(bootstrap: int, width: int) -> Iterator[int]:
    """The drawings, so many at a time as memory allows."""
    rows = max(1, AT_ONCE // width)
    return (min(rows, bootstrap - first) for first in range(0, bootstrap, rows))


def _drawn_counts(answers: Classified, bootstrap: int) -> Iterator[_Counts]:
    # K: the cells of the confusion matrix that hold anything. Drawing examples is drawing cells as often as they occur.
    cells_K, cell_N = np.unique(answers._cells(), return_inverse=True)
    if answers.groups is None:
        random = np.random.default_rng(SEED)
        shares_K = np.bincount(cell_N) / len(cell_N)
        for rows in _blocks(bootstrap, len(cells_K)):
            yield _counts(random.multinomial(len(cell_N), shares_K, size=rows), cells_K, answers)
        return
    _, group_N = np.unique(np.asarray(answers.groups), return_inverse=True)
    counts_SK = np.zeros((group_N.max() + 1, len(cells_K)))
    np.add.at(counts_SK, (group_N, cell_N), 1)
    for weights_RS in _weights(len(counts_SK), bootstrap):
        yield _counts(weights_RS @ counts_SK, cells_K, answers)


def _counts(weights_RK: np.ndarray, cells_K: np.ndarray, answers: Classified) -> _Counts:
    count = len(answers.classes)
    gold_K, predicted_K = np.divmod(cells_K, count)
    is_gold_KC, is_predicted_KC = (side[:, None] == np.arange(count) for side in (gold_K, predicted_K))
    weights_RK = weights_RK.astype(np.float64)  # whole numbers are exact, and their products fast
    is_right_KC = is_gold_KC & is_predicted_KC
    return _Counts(*(weights_RK @ part.astype(np.float64) for part in (is_right_KC, is_gold_KC, is_predicted_KC)))


def _accuracy(counts: _Counts) -> np.ndarray:
    return np.asarray(counts.right_RC.sum(1) / counts.gold_RC.sum(1))


def _f1(counts: _Counts) -> np.ndarray:
    """f1_RC = 2 · right / (true + predicted), the harmonic mean of precision and recall."""
    return np.asarray(2 * counts.right_RC / np.maximum(counts.gold_RC + counts.predicted_RC, 1))


def _macro(counts: _Counts) -> np.ndarray:
    there_RC = counts.gold_RC + counts.predicted_RC > 0
    return np.asarray(_f1(counts).sum(1) / there_RC.sum(1))


def _matthews(counts: _Counts) -> np.ndarray:
    """(c·s - Σ tₖpₖ) / √((s² - Σ tₖ²)(s² - Σ pₖ²)) with s examples, c right, tₖ true and pₖ predicted of a class.

    For two classes this is Matthews' coefficient, for more Gorodkin's (2004).
    """
    gold_RC, predicted_RC = counts.gold_RC, counts.predicted_RC
    all_R, right_R = gold_RC.sum(1), counts.right_RC.sum(1)
    both_R = right_R * all_R - (gold_RC * predicted_RC).sum(1)
    return _ratio(both_R, all_R**2 - (gold_RC**2).sum(1), all_R**2 - (predicted_RC**2).sum(1))


def _ratio(both_R: np.ndarray, one_R: np.ndarray, other_R: np.ndarray) -> np.ndarray:
    """A covariance over the root of two variances, and 0 where one of these is 0; rounding must not take it past 1."""
    scale_R = np.sqrt(one_R) * np.sqrt(other_R)
    return np.clip(both_R / np.where(scale_R > 0, scale_R, np.inf), -1, 1)


def _correlation(
    name: str,
    gold: Sequence[float],
    predicted: Sequence[float],
    values: Callable[[np.ndarray, np.ndarray], np.ndarray],
    bootstrap: int,
) -> Score:
    sides = [np.asarray(side, dtype=np.float64) for side in (gold, predicted)]
    if not len(sides[0]) == len(sides[1]) > 0:
        raise ValueError(f"{len(sides[0])} true numbers, {len(sides[1])} predicted")

    def figure(weights_RN: np.ndarray) -> np.ndarray:
        centred = []
        for side_N in sides:
            values_RN = values(side_N, weights_RN)
            off_RN = values_RN - (weights_RN * values_RN).sum(1, keepdims=True) / weights_RN.sum(1, keepdims=True)
            # A mean is rounded: what differs from it by less than that does not differ.
            off_RN[np.abs(off_RN) < 1e-14 * np.abs(values_RN)] = 0
            centred.append(off_RN)
        one_RN, other_RN = centred
        products = (one_RN * other_RN, one_RN**2, other_RN**2)
        return _ratio(*((weights_RN * product_RN).sum(1) for product_RN in products))

    value = float(figure(np.ones((1, len(sides[0])), dtype=np.int64))[0])
    drawn = [figure(weights_RN) for weights_RN in _weights(len(sides[0]), bootstrap)] if bootstrap > 1 else []
    return Score(name, value, _half(drawn), f"examples:{len(sides[0])}{_drawing(bootstrap)}", 4)


def _ranks(values_N: np.ndarray, weights_RN: np.ndarray) -> np.ndarray:
    """ranks_RN in drawings with so many of each example: those below, and half of those that are equal."""
    order_N = np.argsort(values_N, kind="stable")
    distinct_V, place_N = np.unique(values_N, return_inverse=True)
    starts_V = np.searchsorted(values_N[order_N], distinct_V)
    equal_RV = np.add.reduceat(weights_RN[:, order_N], starts_V, axis=1)
    ranks_RV = np.cumsum(equal_RV, axis=1) - equal_RV / 2 + 0.5
    return np.asarray(ranks_RV[:, place_N])


# The confusion matrix


def confusion_table(answers: Classified) -> str:
    """True classes downwards, predicted ones across, with recall behind each row and precision under each column."""
    from rich.cells import cell_len

    counts_GP = answers.confusion_GP
    names = [_printable(name) for name in answers.classes]
    numbered = max(map(cell_len, names)) > WIDEST
    heads = [str(number) for number in range(1, len(names) + 1)] if numbered else names
    sides = [f"{head} {name}" for head, name in zip(heads, names, strict=True)] if numbered else names
    right_C = counts_GP.diagonal()
    recall, precision = (_percents(right_C, counts_GP.sum(axis)) for axis in (1, 0))
    rows = [["true \\ predicted", *heads, "recall"]]
    rows += [[side, *map(str, row), share] for side, row, share in zip(sides, counts_GP.tolist(), recall, strict=True)]
    rows += [["precision", *precision, ""]]
    widths = [max(cell_len(row[place]) for row in rows) for place in range(len(rows[0]))]
    lines = []
    for first, *others in rows:
        # Japanese characters are two cells wide, which str.rjust does not know.
        cells = [" " * (width - cell_len(cell)) + cell for cell, width in zip(others, widths[1:], strict=True)]
        lines.append("  ".join([first + " " * (widths[0] - cell_len(first)), *cells]).rstrip() + "\n")
    return "".join(lines)


def draw_confusion(answers: Classified, path: Path) -> Path:
    """The same as a picture, PNG or SVG: the darker, the larger the share of its row."""
    from matplotlib.figure import Figure

    if path.suffix.lower() not in (".png", ".svg"):
        raise UserError(f"{path}: pictures are .png or .svg")
    counts_GP = answers.confusion_GP
    names = [_printable(name) for name in answers.classes]
    shares_GP = counts_GP / np.maximum(counts_GP.sum(1, keepdims=True), 1)
    cell = min(0.45, 36 / len(names))  # inches: a limit for hundreds of classes
    size = 1.8 + 0.08 * max(map(len, names)) + cell * len(names)
    figure = Figure(figsize=(size + 0.8, size), layout="constrained")
    axes = figure.add_subplot()
    image = axes.imshow(shares_GP, cmap="Blues", vmin=0.0, vmax=1.0)
    # A pair of dollar signs in a name is not a formula.
    axes.set_xticks(range(len(names)), names, rotation=45, ha="left", rotation_mode="anchor", parse_math=False)
    axes.xaxis.tick_top()
    axes.set_yticks(range(len(names)), names, parse_math=False)
    axes.tick_params(length=0, labelsize=22 * cell)
    for gold, predicted in np.argwhere(counts_GP):
        ink = "white" if shares_GP[gold, predicted] > 0.6 else "black"
        axes.text(
            predicted, gold, str(counts_GP[gold, predicted]), ha="center", va="center", color=ink, fontsize=17 * cell
        )
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.set_ylabel("true")
    axes.set_xlabel("predicted")
    figure.colorbar(image, ax=axes, shrink=0.8, pad=0.02, label="share of the true class")
    try:
        figure.savefig(path, dpi=150)
    except OSError as error:
        raise UserError(f"{path}: {error.strerror or error}") from None
    return path


def _percents(part_C: np.ndarray, whole_C: np.ndarray) -> list[str]:
    return [f"{100 * part / whole:.1f}" if whole else "-" for part, whole in zip(part_C, whole_C, strict=True)]


def _printable(name: str) -> str:
    """A name from a file, without control characters for a terminal."""
    return "".join(character if character.isprintable() else "\ufffd" for character in name)
