"""Causes that are planted and must be found: `python tests/planted.py` runs 200 cases of each kind, and 50 of a person
who is wrong every fifth time; the suite runs a few of each (`test_explain.py`)."""

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from saccade.explaining.covers import PictureCover
from saccade.explaining.explain import explain
from saccade.explaining.questionnaire import digest_of, read_answers
from small_pictures import seer

WORDS = """
    the a one this that my old new small large red blue warm cold cat dog bird house garden road river child woman man
    sees likes finds hears makes takes in on under behind near with without today often never always there here quickly
"""
SIDE, REGION = 32, 8
RATE = 8_000
SECONDS = 8


def region_case(case: int, *, masks: int = 500) -> bool:
    """A box that compares one square of a picture with what stands there; all else is noise to it."""
    random = np.random.default_rng([1, case])
    picture = random.random((SIDE, SIDE)).astype(np.float32)
    top, left = random.integers(0, SIDE - REGION + 1, 2).tolist()
    place = slice(top, top + REGION), slice(left, left + REGION)
    expected = picture[place]

    def box(shown: np.ndarray) -> float:
        return float(np.exp(-20 * np.square(shown[place] - expected).mean()))

    found = explain(box, picture, masks=masks, seed=case)
    row, column = divmod(int(found.values_P.argmax()), SIDE)
    return top <= row < top + REGION and left <= column < left + REGION


def word_case(case: int, *, masks: int = 300) -> bool:
    """A box that reads one word of a sentence of 6 to 30."""
    random = np.random.default_rng([2, case])
    words = random.choice(WORDS.split(), int(random.integers(6, 31)), replace=False).tolist()
    wanted = str(random.choice(words))
    return explain(lambda text: wanted in text.split(), " ".join(words), masks=masks, seed=case).top(1)[0][0] == wanted


def second_case(case: int, *, masks: int = 400) -> bool:
    """A box that hears how loud one second of a noisy recording is."""
    random = np.random.default_rng([3, case])
    sound = random.normal(0, 0.2, SECONDS * RATE).astype(np.float32)
    first = int(random.integers(0, (SECONDS - 1) * RATE))

    def box(heard: np.ndarray) -> float:
        return float(np.square(heard[first : first + RATE]).mean())

    found = explain(box, sound, masks=masks, seed=case, rate=RATE)
    at = int(found.values_P.argmax()) * len(sound) / len(found.values_P)
    return first <= at < first + RATE


def person_case(case: int, *, masks: int = 400, wrong: float = 0.2) -> bool:
    """Somebody who says yes where most of a region is shown, and is wrong every fifth time, fills in a form."""
    random = np.random.default_rng([4, case])
    picture = (random.random((64, 64, 3)) * 255).astype(np.uint8)
    top, left, side = *random.integers(0, 64 - 20 + 1, 2).tolist(), 20
    cover = PictureCover(picture)
    region = np.zeros((64, 64), dtype=bool)
    region[top : top + side, left : left + side] = True
    answers = []
    for number, mask in enumerate(cover.masks(case, 0, masks)):
        yes = mask[region.reshape(-1)].mean() > 0.5
        answers.append([number, float(yes != (random.random() < wrong))])
    form = {"format": 1, "input": digest_of(cover), "seed": case, "masks": masks}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "answers.json"
        file.write_text(json.dumps({"form": form, "answers": answers}), "utf-8")
        found = read_answers(cover, file)
    row, column = divmod(int(found.values_P.argmax()), 64)
    return bool(region[row, column])


KINDS: dict[str, tuple[Callable[[int], bool], int, float]] = {
    "region of a picture": (region_case, 200, 0.95),
    "word of a sentence": (word_case, 200, 0.95),
    "second of a sound": (second_case, 200, 0.95),
    "person, 20 % noise, 400 masks": (person_case, 50, 0.90),
}


def errors(
    counts: tuple[int, ...] = (250, 1_000, 4_000), runs: int = 10, truth_masks: int = 64_000
) -> Iterator[tuple[int, float, float]]:
    """By number of masks: how far estimates lie from one of many masks (root mean square), and the standard error that
    they tell of themselves."""
    text = " ".join(WORDS.split()[:16])

    def box(shown: str) -> float:
        words = set(shown.split())
        return 0.3 * ("one" in words) + 0.5 * ({"large", "red"} <= words) + 0.02 * len(words)

    truth = explain(box, text, masks=truth_masks, seed=1_000).values_P
    for count in counts:
        some = [explain(box, text, masks=count, seed=seed) for seed in range(runs)]
        off = float(np.sqrt(np.mean([np.square(one.values_P - truth) for one in some])))
        told = float(np.mean([np.mean(one.errors_P) for one in some if one.errors_P is not None]))
        yield count, off, told


def seconds_of_masks(masks: int = 4_000) -> float:
    """RISE on a picture of 64 x 64 pixels with a small convolutional network, and how long it takes."""
    pipeline = seer(side=64, convolutions=True)
    picture = (np.random.default_rng(0).random((64, 64, 3)) * 255).astype(np.uint8)
    pipeline(picture)  # packs its weights
    begun = time.perf_counter()
    explain(pipeline, picture, masks=masks)
    return time.perf_counter() - begun


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, help="cases of each kind; default: 200, of the person 50")
    asked = parser.parse_args()
    failed = False
    for name, (case, most, share) in KINDS.items():
        count, begun = asked.cases or most, time.perf_counter()
        found = sum(case(number) for number in range(count))
        failed |= found < share * count
        print(
            f"{name}: {found} of {count} found ({found / count:.1%}), {time.perf_counter() - begun:.0f} s", flush=True
        )
    for count, off, told in errors():
        print(f"{count:>6} masks: error {off:.4f}, times √N {off * count**0.5:.2f}; standard error {told:.4f}")
    took = seconds_of_masks()
    print(f"4,000 masks on 64 x 64 pixels with a small convolutional network: {took:.1f} s")
    return int(failed or took > 60)


if __name__ == "__main__":
    raise SystemExit(main())
