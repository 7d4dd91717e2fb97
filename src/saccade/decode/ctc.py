"""What CTC says of a text (Graves et al. 2006): the score of every beginning, for joint search with attention (Watanabe
et al. 2017, 4.2), and where each token of a whole text stands."""

from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from saccade.runtime.contract import Floats, Ids

IMPOSSIBLE = -1e9
"""Instead of minus infinity, which no difference could be taken of."""


@dataclass(frozen=True)
class CtcColumns:
    """The log-probabilities of one input, position by position, and how much they count beside the decoder's."""

    logprobs_SV: Floats
    blank: int
    """The id that stands for nothing."""
    end: int
    """The id that ends a text, which CTC does not write."""
    weight: float
    """Share of CTC's score; the decoder has the rest."""

    def begin(self) -> "Prefixes":
        """Nothing is written yet."""
        logprobs_SV = self.logprobs_SV.astype(np.float64)
        blanks_1S = logprobs_SV[None, :, self.blank].cumsum(axis=1)
        never_1S = np.full_like(blanks_1S, -np.inf)
        return Prefixes(self, logprobs_SV, never_1S, blanks_1S, np.zeros(1), np.full(1, -1))


@dataclass
class Prefixes:
    """The beginnings of one text that its beams hold: the log-probability of all ways to have written just that after
    each position, the last one a token or a blank."""

    columns: CtcColumns
    logprobs_SV: Floats
    token_KS: Floats
    blank_KS: Floats
    score_K: Floats
    """Log-probability of all texts that begin so."""
    last_K: Ids
    """The last token; -1 at the beginning."""
    _candidates: tuple[Floats, Floats, Floats, Ids] = field(init=False, repr=False)

    def gains(self, tokens_KC: Ids) -> Floats:
        """How much the score of each beginning changes by each of its candidates; the end mark asks for nothing more
        than what is written."""
        logp_KCS = self.logprobs_SV.T[tokens_KC]
        blanks_S = self.logprobs_SV[:, self.columns.blank]
        # Before position s: all that was written up to it, after a blank only where the token repeats the last one.
        before_KS = _shifted(np.logaddexp(self.token_KS, self.blank_KS), 0.0 if self._fresh else -np.inf)
        repeats_KS = _shifted(self.blank_KS, 0.0 if self._fresh else -np.inf)
        same_KC1 = (tokens_KC == self.last_K[:, None])[..., None]
        before_KCS = np.where(same_KC1, repeats_KS[:, None], before_KS[:, None])
        token_KCS = _carried(before_KCS, logp_KCS)
        never = np.full((*token_KCS.shape[:2], 1), -np.inf)
        blank_KCS = _carried(np.concatenate([never, token_KCS[..., :-1]], axis=-1), blanks_S)
        score_KC = np.maximum(np.logaddexp.reduce(before_KCS + logp_KCS, axis=-1), IMPOSSIBLE)
        whole_K1 = np.logaddexp(self.token_KS[:, -1:], self.blank_KS[:, -1:])
        score_KC = np.where(tokens_KC == self.columns.end, np.maximum(whole_K1, IMPOSSIBLE), score_KC)
        self._candidates = token_KCS, blank_KCS, score_KC, tokens_KC
        return np.asarray(score_KC - self.score_K[:, None])

    def keep(self, from_K: Ids, candidate_K: Ids) -> None:
        """The beams go on with these candidates of those beginnings."""
        token_KCS, blank_KCS, score_KC, tokens_KC = self._candidates
        self.token_KS, self.blank_KS = token_KCS[from_K, candidate_K], blank_KCS[from_K, candidate_K]
        self.score_K, self.last_K = score_KC[from_K, candidate_K], tokens_KC[from_K, candidate_K]

    @property
    def _fresh(self) -> bool:
        return int(self.last_K[0]) == -1


def _shifted(values_KS: Floats, first: float) -> Floats:
    """What stood one position before."""
    return np.concatenate([np.full((len(values_KS), 1), first), values_KS[:, :-1]], axis=1)


def _carried(enters: Floats, logp: Floats) -> Floats:
    """r(s) = log(e^r(s-1) + e^enters(s)) + logp(s), for all positions at once: with A the running sum of logp,
    r(s) - A(s) is the running log-sum of enters(s) - A(s-1)."""
    sums = np.broadcast_to(logp, enters.shape).cumsum(axis=-1)
    carried: Floats = sums + np.logaddexp.accumulate(enters - (sums - logp), axis=-1)
    return carried


def align(logprobs_SV: Floats, tokens: list[int], blank: int) -> tuple[Ids, Ids]:
    """The likeliest places of a text's tokens: for each its first position and the one after its last, along the best
    path through blanks and tokens (Viterbi). A text longer than the positions is spread evenly."""
    positions, count = len(logprobs_SV), len(tokens)
    repeats = sum(one == other for one, other in pairwise(tokens))
    if count + repeats > positions:
        edges = np.linspace(0, positions, count + 1).round().astype(np.int64)
        return edges[:-1], np.maximum(edges[1:], edges[:-1] + 1)
    states = np.full(2 * count + 1, blank)
    states[1::2] = tokens
    leaps = np.zeros(len(states), dtype=bool)
    leaps[3::2] = states[3::2] != states[1:-2:2]
    best = np.full(len(states), -np.inf)
    best[:2] = logprobs_SV[0, states[:2]]
    back = np.zeros((positions, len(states)), dtype=np.int8)
    for position in range(1, positions):
        ways = np.full((3, len(states)), -np.inf)
        ways[0], ways[1, 1:] = best, best[:-1]
        ways[2, 2:] = np.where(leaps[2:], best[:-2], -np.inf)
        back[position] = ways.argmax(axis=0)
        best = ways.max(axis=0) + logprobs_SV[position, states]
    state = len(states) - 1 if count == 0 or best[-1] >= best[-2] else len(states) - 2
    path = np.zeros(positions, dtype=np.int64)
    for position in range(positions - 1, -1, -1):
        path[position] = state
        state -= int(back[position, state])
    places = [np.flatnonzero(path == 2 * number + 1) for number in range(count)]
    first = np.array([place[0] for place in places], dtype=np.int64)
    after = np.array([place[-1] + 1 for place in places], dtype=np.int64)
    return first, after
