"""Beam search: keep the K likeliest beginnings of every text. A group of a session."""

from copy import copy

import numpy as np

from saccade.decode.choose import best_tokens
from saccade.decode.hypothesis import NEVER, Hypothesis, length_penalty
from saccade.decode.listen import listened, tell_step
from saccade.decode.row import Beam, Strategy, Text
from saccade.runtime.contract import Floats, Ids


class Beams:
    """Texts under way, K rows each: the rows of a text stand side by side.

    Texts that joined at different times have different lengths. Their tokens are aligned at the right, where the next
    ones are added for all of them at once.
    """

    def __init__(self, shared: Beam, end: int, texts: list[Text], rows: Ids) -> None:
        self.shared: Strategy = shared
        self.width, self.end, self.texts, self.rows = shared.width, end, texts, rows
        self.tokens: Ids = np.empty(0, dtype=np.int64)
        self.begun = False  # until then a text has one row, and no tokens
        # All beams of a text begin alike: only the first may speak in the first round.
        self.sums_MK: Floats = np.full((len(texts), self.width), NEVER)
        self.sums_MK[:, 0] = 0.0
        self.written_MKT: Ids = np.empty((len(texts), self.width, 0), dtype=np.int64)

    def choose(self, logits_BV: Floats) -> list[Text]:
        """What a text will be is not known before it is over."""
        if listened():
            self._tell(logits_BV)
        best_MC, from_MC, column_MC, token_MC = self._candidates(logits_BV)
        ends_MC = token_MC == self.end
        if ends_MC.any():
            self._take_ended(ends_MC, best_MC, from_MC)
            going_MK = ends_MC.argsort(axis=1, kind="stable")[:, : self.width]
            best_MC = np.take_along_axis(best_MC, going_MK, axis=1)
            from_MC = np.take_along_axis(from_MC, going_MK, axis=1)
            token_MC = np.take_along_axis(token_MC, going_MK, axis=1)
            column_MC = np.take_along_axis(column_MC, going_MK, axis=1)
        self.sums_MK = best_MC[:, : self.width]
        from_MK, token_MK = from_MC[:, : self.width], token_MC[:, : self.width]
        for place, text in enumerate(self.texts):
            if text.prefixes is not None:
                text.prefixes.keep(from_MK[place], column_MC[place, : self.width])
        places_M1 = np.arange(len(self.texts))[:, None]
        self.rows = self.rows[(places_M1 * self.width + from_MK).ravel()]
        self.tokens = token_MK.ravel()
        self.written_MKT = np.concatenate([self.written_MKT[places_M1, from_MK], token_MK[:, :, None]], axis=2)
        return self._leave()

    def _tell(self, logits_BV: Floats) -> None:
        width = self.width if self.begun else 1
        for place, text in enumerate(self.texts):
            written = [[*text.request.prefix, *self._written(place, beam)] for beam in range(width)]
            tell_step(text, written, self.sums_MK[place, :width].tolist(), logits_BV[place * width :][:width])

    def _candidates(self, logits_BV: Floats) -> tuple[Floats, Ids, Ids, Ids]:
        """The 2K likeliest ways on of each text, likeliest first: log-probability, which beam, which of its candidates,
        and which token."""
        # Each beam can end in one way only, so 2K candidates always hold K that go on, and no beam has more of them.
        logprobs_BC, tokens_BC = best_tokens(logits_BV, 2 * self.width)
        if not self.begun:
            self.begun, self.rows = True, self.rows.repeat(self.width)
            logprobs_BC, tokens_BC = logprobs_BC.repeat(self.width, axis=0), tokens_BC.repeat(self.width, axis=0)
        texts, count = len(self.texts), tokens_BC.shape[1]
        if any(text.prefixes is not None for text in self.texts):
            logprobs_BC = self._joint(logprobs_BC, tokens_BC)
        totals_ME = (self.sums_MK.reshape(-1, 1) + logprobs_BC).reshape(texts, -1)
        flat_MC = (-totals_ME).argsort(axis=1, kind="stable")[:, : 2 * self.width]
        chosen_MC = flat_MC + np.arange(0, totals_ME.size, totals_ME.shape[1])[:, None]
        return totals_ME.ravel()[chosen_MC], flat_MC // count, flat_MC % count, tokens_BC.ravel()[chosen_MC]

    def _joint(self, logprobs_BC: Floats, tokens_BC: Ids) -> Floats:
        """(1 - w) · log p_attention + w · log p_CTC: what CTC says of the decoder's candidates."""
        joint_BC = logprobs_BC.astype(np.float64)
        for place, text in enumerate(self.texts):
            if text.prefixes is None:
                continue
            rows, weight = slice(place * self.width, (place + 1) * self.width), text.prefixes.columns.weight
            joint_BC[rows] = (1 - weight) * joint_BC[rows] + weight * text.prefixes.gains(tokens_BC[rows])
        return joint_BC

    def _take_ended(self, ends_MC: np.ndarray, best_MC: Floats, from_MC: Ids) -> None:
        """A text that ends is taken if it is among the K best of its row."""
        for place, candidate in np.argwhere(ends_MC[:, : self.width]).tolist():
            text = self.texts[place]
            tokens = self._written(place, int(from_MC[place, candidate]))
            _take(text, tokens, float(best_MC[place, candidate]), text.written + 1, ended=True)

    def _leave(self) -> list[Text]:
        going, over = [], []
        for place, (text, best) in enumerate(zip(self.texts, self.sums_MK[:, 0].tolist(), strict=True)):
            text.written += 1
            if text.written < text.request.limit and _goes_on(text, best, self.width):
                going.append(place)
                continue
            if text.written >= text.request.limit:
                self._fill(place)
            _close(text, self.width)
            over.append(text)
        if over:
            self.keep(going)
        return over

    def _fill(self, place: int) -> None:
        """At the limit, unfinished beams fill the places that no finished text took."""
        text = self.texts[place]
        for beam, logprob in enumerate(self.sums_MK[place].tolist()):
            if len(text.found) < self.width:
                _take(text, self._written(place, beam), logprob, text.written, ended=False)

    def _written(self, place: int, beam: int) -> list[int]:
        length = self.texts[place].written
        tokens: list[int] = self.written_MKT[place, beam, self.written_MKT.shape[2] - length :].tolist()
        return tokens

    def keep(self, places: list[int]) -> None:
        self.texts = [self.texts[place] for place in places]
        longest = max((text.written for text in self.texts), default=0)
        self.sums_MK = self.sums_MK[places]
        self.written_MKT = self.written_MKT[places, :, self.written_MKT.shape[2] - longest :]
        if not self.begun:
            self.rows = self.rows[places]
            return
        rows_B = (np.array(places, dtype=np.int64)[:, None] * self.width + np.arange(self.width)).ravel()
        self.rows, self.tokens = self.rows[rows_B], self.tokens[rows_B]

    def split(self, places: list[int]) -> "Beams":
        part = copy(self)
        part.keep(places)
        return part

    def join(self, other: "Beams") -> None:
        longest = max(self.written_MKT.shape[2], other.written_MKT.shape[2])
        self.texts = [*self.texts, *other.texts]
        self.rows = np.concatenate([self.rows, other.rows])
        self.tokens = np.concatenate([self.tokens, other.tokens])
        self.sums_MK = np.concatenate([self.sums_MK, other.sums_MK])
        self.written_MKT = np.concatenate([_lengthened(part.written_MKT, longest) for part in (self, other)])

    def windows(self, length: int) -> list[list[int]]:
        return [
            [*text.request.prompt, *text.request.prefix, *self._written(place, beam)][-length:]
            for place, text in enumerate(self.texts)
            for beam in range(self.width)
        ]


def _lengthened(written_MKT: Ids, length: int) -> Ids:
    return np.pad(written_MKT, ((0, 0), (0, 0), (length - written_MKT.shape[2], 0)))


def _alpha(text: Text) -> float:
    assert isinstance(text.request.strategy, Beam)
    return text.request.strategy.alpha


def _take(text: Text, tokens: list[int], logprob: float, length: int, *, ended: bool) -> None:
    """One more text that may be returned."""
    if logprob > NEVER:
        score = logprob / length_penalty(length, _alpha(text))
        text.found.append(Hypothesis([*text.request.prefix, *tokens], logprob, score, ended))


def _goes_on(text: Text, best: float, width: int) -> bool:
    """Unless K texts are finished, and the best unfinished one is behind the K-th of them."""
    if len(text.found) < width:
        return best > NEVER
    return best / length_penalty(text.written, _alpha(text)) > _ranked(text.found)[width - 1].score


def _close(text: Text, width: int) -> None:
    """The text is over: of what was found, the best K stay, and the first of them is its text."""
    text.over, text.found = True, _ranked(text.found)[:width]
    if text.found:
        first = text.found[0]
        text.tokens, text.logprob, text.finished = first.tokens, first.logprob, first.finished


def _ranked(found: list[Hypothesis]) -> list[Hypothesis]:
    return sorted(found, key=lambda text: -text.score)
