"""Scores of captions and answers: by the grammar of scenes, by BLEU, by exact answers; and how sure a model may be."""

from collections.abc import Callable, Sequence

import numpy as np

from saccade.data.picture_texts import HeldOut
from saccade.data.scene_captions import Checked, check_caption
from saccade.evaluate.calibration import calibration_error
from saccade.evaluate.classes import Classified, accuracy
from saccade.evaluate.metrics import Score

WANTED = 0.95
"""Share of right answers above the confidence from which a model is sure."""
FEWEST_SURE = 20
"""Answers that such a share is measured on, at least."""
PARTS: dict[str, Callable[[Checked], bool]] = {
    "sentences of the grammar": lambda checked: checked.read,
    "things": lambda checked: checked.things,
    "counts": lambda checked: checked.counts,
    "relations": lambda checked: checked.relations,
    "sizes": lambda checked: checked.sizes,
    "ground": lambda checked: checked.ground,
}
"""What of captions is counted apart."""


def right_answers(held: HeldOut, texts: Sequence[str]) -> list[bool]:
    """Which captions of scenes have no wrong thing, count or relation; which answers are one of the accepted ones."""
    if held.scenes and not held.questions:
        return [check_caption(text, scene).right for text, scene in zip(texts, held.scenes, strict=True)]
    return [text in accepted for text, accepted in zip(texts, held.references, strict=True)]


def share(name: str, right: Sequence[bool], signature: str) -> Score:
    """In percent, with its interval."""
    found = accuracy(Classified([1] * len(right), [int(one) for one in right], ["wrong", "right"]))
    return Score(name, found.value, found.interval, signature)


def caption_scores(held: HeldOut, texts: Sequence[str], sure_N: Sequence[float]) -> list[Score]:
    """Of scenes by their grammar: right ones, by the number of things, and each part alone; of others BLEU."""
    if not held.scenes:
        return bleu_scores(held, texts)
    checked = [check_caption(text, scene) for text, scene in zip(texts, held.scenes, strict=True)]
    right = [one.right for one in checked]
    scores = [share(f"right captions, {held.name}", right, f"scenes:{len(right)}|no wrong thing, count or relation")]
    scores += _by_things(held, right)
    for name, part in PARTS.items():
        scores.append(share(f"right {name}", [part(one) for one in checked], f"scenes:{len(right)}"))
    return [*scores, calibration_error(sure_N, right, of="scenes")]


def answer_scores(held: HeldOut, texts: Sequence[str], sure_N: Sequence[float]) -> list[Score]:
    """Right answers: all, by the kind of question, and by the number of things."""
    right = right_answers(held, texts)
    scores = [share(f"right answers, {held.name}", right, f"questions:{len(right)}|exact")]
    for kind in dict.fromkeys(sorted(held.kinds)):
        some = [one for one, other in zip(right, held.kinds, strict=True) if other == kind]
        scores.append(share(f"right answers to {kind!r}", some, f"questions:{len(some)}"))
    if held.scenes:
        scores += _by_things(held, right)
    return [*scores, calibration_error(sure_N, right, of="questions")]


def bleu_scores(held: HeldOut, texts: Sequence[str]) -> list[Score]:
    """BLEU-1 and BLEU-4 against all captions of each picture."""
    from sacrebleu.metrics.bleu import BLEU

    columns = [list(column) for column in zip(*_equally_many(held.references), strict=True)]
    scores = []
    for order in (1, 4):
        metric = BLEU(max_ngram_order=order, lowercase=True)
        found = metric.corpus_score(list(texts), columns)
        scores.append(Score(f"BLEU-{order}, {held.name}", float(found.score), None, str(metric.get_signature())))
    return scores


def _equally_many(references: Sequence[Sequence[str]]) -> list[list[str | None]]:
    most = max(map(len, references))
    return [[*some, *[None] * (most - len(some))] for some in references]


def _by_things(held: HeldOut, right: Sequence[bool]) -> list[Score]:
    counts = [len(scene.things) for scene in held.scenes]
    scores = []
    for count in sorted(set(counts)):
        some = [one for one, other in zip(right, counts, strict=True) if other == count]
        scores.append(share(f"right, {count} thing{'s' if count > 1 else ''}", some, f"scenes:{len(some)}"))
    return scores


def sure_from(sure_N: Sequence[float], right_N: Sequence[bool], wanted: float = WANTED) -> float:
    """The lowest confidence with which and above which so many answers are right; 1 where there is none."""
    order = np.argsort(-np.asarray(sure_N), kind="stable")
    ranked_N, sorted_N = np.asarray(right_N, dtype=float)[order], np.asarray(sure_N)[order]
    shares_N = np.cumsum(ranked_N) / np.arange(1, len(ranked_N) + 1)
    enough = np.flatnonzero((shares_N >= wanted) & (np.arange(1, len(ranked_N) + 1) >= min(FEWEST_SURE, len(ranked_N))))
    return float(sorted_N[enough[-1]]) if len(enough) else 1.0


def sure_scores(sure_N: Sequence[float], right_N: Sequence[bool], threshold: float) -> list[Score]:
    """How many answers the model is sure of, and how many of these are right."""
    above = [right for right, sure in zip(right_N, sure_N, strict=True) if sure >= threshold]
    signature = f"confidence:{threshold:.3f} and above"
    scores = [Score("sure of", 100 * len(above) / max(1, len(right_N)), None, signature)]
    return [*scores, share("right where sure", above, f"answers:{len(above)}")] if above else scores
