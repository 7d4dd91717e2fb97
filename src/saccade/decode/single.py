"""Texts of one row each: every step adds the likeliest token, or one that is drawn. A group of a session."""

from copy import copy

import numpy as np

from saccade.decode.choose import best_tokens
from saccade.decode.listen import listened, tell_step
from saccade.decode.row import Greedy, Sample, Strategy, Text
from saccade.decode.sample import draw_tokens
from saccade.runtime.contract import Floats, Ids


class Singles:
    """Texts under way that are all greedy, or drawn with the same settings."""

    begun = True

    def __init__(self, shared: Greedy | Sample, end: int, texts: list[Text], rows: Ids) -> None:
        self.shared: Strategy = shared
        self.end, self.texts, self.rows = end, texts, rows
        self.tokens: Ids = np.zeros(len(texts), dtype=np.int64)

    def choose(self, logits_BV: Floats) -> list[Text]:
        """Every text has something new."""
        texts = self.texts
        for place, text in enumerate(texts if listened() else []):
            tell_step(text, [list(text.tokens)], [text.logprob], logits_BV[place : place + 1])
        logprobs_B, tokens_B = self._pick(logits_BV)
        self.tokens, end = tokens_B, self.end
        going = []
        for place, (token, logprob) in enumerate(zip(tokens_B.tolist(), logprobs_B.tolist(), strict=True)):
            text = texts[place]
            text.logprob += logprob
            text.written += 1
            if token == end:
                text.finished = text.over = True
                continue
            text.tokens.append(token)
            if text.written < text.request.limit:
                going.append(place)
            else:
                text.over = True
        if len(going) < len(texts):
            self.keep(going)
        return texts

    def _pick(self, logits_BV: Floats) -> tuple[Floats, Ids]:
        """The next token of each text: log-probabilities [B] and tokens [B]."""
        if isinstance(self.shared, Sample):
            draws = [text.draws for text in self.texts if text.draws is not None]
            return draw_tokens(logits_BV, self.shared.drawing, draws)
        logprobs_B1, tokens_B1 = best_tokens(logits_BV, 1)
        return logprobs_B1[:, 0], tokens_B1[:, 0]

    def keep(self, places: list[int]) -> None:
        self.texts = [self.texts[place] for place in places]
        self.rows, self.tokens = self.rows[places], self.tokens[places]

    def split(self, places: list[int]) -> "Singles":
        part = copy(self)
        part.keep(places)
        return part

    def join(self, other: "Singles") -> None:
        self.texts = [*self.texts, *other.texts]
        self.rows = np.concatenate([self.rows, other.rows])
        self.tokens = np.concatenate([self.tokens, other.tokens])

    def windows(self, length: int) -> list[list[int]]:
        return [[*text.request.prompt, *text.tokens][-length:] for text in self.texts]
