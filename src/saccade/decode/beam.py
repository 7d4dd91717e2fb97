"""Beam search: keep the K likeliest beginnings of every sentence."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from saccade.decode.choose import best_tokens
from saccade.decode.hypothesis import NEVER, Hypothesis, begin, forbid, length_penalty
from saccade.runtime.contract import ArrayMemory, DecoderLike, S
from saccade.tokens.marks import Marks


def beam(
    decoder: DecoderLike[S],
    memory: ArrayMemory | None,
    *,
    prefixes: Sequence[Sequence[int]],
    marks: Marks,
    limits: Sequence[int],
    width: int,
    alpha: float = 0.6,
) -> list[list[Hypothesis]]:
    """The best `width` texts of every sentence, best first; sentences that are done leave the batch."""
    sentences = [_Sentence(prefix, limit, width, alpha) for prefix, limit in zip(prefixes, limits, strict=True)]
    active = sentences
    logits_BV, state = begin(decoder, memory, prefixes, marks, rows=width)
    # All beams of a sentence begin alike: only the first may speak in the first round.
    sums_MK = np.full((len(active), width), NEVER)
    sums_MK[:, 0] = 0.0
    written_MKT = np.empty((len(active), width, 0), dtype=np.int64)
    length = 0
    while True:
        length += 1
        # Each beam can end in one way only, so 2K candidates always hold K that go on, and no beam has more of them.
        logprobs_BC, tokens_BC = best_tokens(forbid(logits_BV, marks.never_written), 2 * width)
        count = tokens_BC.shape[1]
        totals_ME = (sums_MK.reshape(-1, 1) + logprobs_BC).reshape(len(active), -1)
        flat_MC = (-totals_ME).argsort(axis=1, kind="stable")[:, : 2 * width]
        best_MC, from_MC = _pick(totals_ME, flat_MC), flat_MC // count
        token_MC = _pick(tokens_BC.reshape(len(active), -1), flat_MC)
        ends_MC = token_MC == marks.end
        # A text that ends is taken if it is among the K best of its sentence.
        for place, candidate in np.argwhere(ends_MC[:, :width]):
            tokens = written_MKT[place, from_MC[place, candidate]].tolist()
            active[place].take(tokens, float(best_MC[place, candidate]), length, ended=True)

        going_MK = ends_MC.argsort(axis=1, kind="stable")[:, :width]
        sums_MK, from_MK, token_MK = (_pick(part, going_MK) for part in (best_MC, from_MC, token_MC))
        places_M1 = np.arange(len(active))[:, None]
        written_MKT = np.concatenate([written_MKT[places_M1, from_MK], token_MK[:, :, None]], axis=2)
        keep = [
            place
            for place, sentence in enumerate(active)
            if sentence.goes_on(written_MKT[place], sums_MK[place], length)
        ]
        if not keep:
            break
        rows_MK = places_M1 * width + from_MK
        if len(keep) < len(active):
            sums_MK, token_MK, written_MKT, rows_MK = (t[keep] for t in (sums_MK, token_MK, written_MKT, rows_MK))
            active = [active[place] for place in keep]
        state = state.reorder(rows_MK.ravel())
        logits_BV, state = decoder.step(token_MK.ravel(), state)
    return [sentence.best() for sentence in sentences]


def _pick(values_ME: np.ndarray, places_MC: np.ndarray) -> np.ndarray:
    return np.take_along_axis(values_ME, places_MC, axis=1)


@dataclass
class _Sentence:
    """The texts one sentence has so far, and whether to look for more."""

    prefix: Sequence[int]
    limit: int
    width: int
    alpha: float
    texts: list[Hypothesis] = field(default_factory=list)

    def take(self, tokens: list[int], logprob: float, length: int, *, ended: bool) -> None:
        if logprob > NEVER:
            score = logprob / length_penalty(length, self.alpha)
            self.texts.append(Hypothesis([*self.prefix, *tokens], logprob, score, ended))

    def goes_on(self, written_KT: np.ndarray, sums_K: np.ndarray, length: int) -> bool:
        """Unless at its limit, or K texts are finished and the best unfinished one is behind the K-th of them."""
        if length >= self.limit:
            # Unfinished beams fill the places that no finished text took.
            for tokens, logprob in zip(written_KT.tolist(), sums_K.tolist(), strict=True):
                if len(self.texts) < self.width:
                    self.take(tokens, logprob, length, ended=False)
            return False
        if len(self.texts) < self.width:
            return float(sums_K[0]) > NEVER
        return float(sums_K[0]) / length_penalty(length, self.alpha) > self.best()[-1].score

    def best(self) -> list[Hypothesis]:
        return sorted(self.texts, key=lambda text: -text.score)[: self.width]
