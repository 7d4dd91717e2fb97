"""Writing: rows join, step and leave. A batch, a stream to the terminal and a server are callers of the same session.

The decoder is called once a step for all rows, whatever their strategies; rows with one strategy choose their tokens
together. No row's text depends on the rows beside it.
"""

from collections.abc import Iterable, Sequence
from typing import Generic

import numpy as np

from saccade.decode.group import Group, group_of, joined, number_rows, shared_part
from saccade.decode.hypothesis import forbid, write_all
from saccade.decode.reading import Reading, as_few
from saccade.decode.row import RowRequest, Strategy, Text
from saccade.runtime.contract import AnyArrayMemory, DecoderLike, Floats, S
from saccade.tokens.marks import Marks


class Session(Generic[S]):
    """Texts under way on one decoder: `add`, `step` while there are any, `drop` in between."""

    def __init__(self, decoder: DecoderLike[S], marks: Marks, *, context: int | None = None) -> None:
        """`context`: the tokens that a language model can hold. A text that fills it goes on with its second half as
        all the model remembers. When that happens is decided by the text's own length, never by its neighbours'."""
        self.decoder, self.marks, self.context = decoder, marks, context
        self.forbidden = marks.never_written
        self.state: S | None = None
        self.groups: dict[Strategy, Group] = {}
        self.waiting: list[Reading] = []
        self.moved = False
        """The groups' rows are no longer those of the state, one group after the other."""

    def __len__(self) -> int:
        """The texts that are not over."""
        waiting = (group for reading in self.waiting for group in reading.groups)
        return sum(len(group.texts) for group in (*self.groups.values(), *waiting))

    def __bool__(self) -> bool:
        """Whether there is a text to write."""
        return bool(self.groups or self.waiting)

    def add(self, request: RowRequest, memory: AnyArrayMemory | None = None) -> Text:
        """A row that writes its first token in the next step; `memory` holds what it looks at, and nothing else."""
        return self.add_all([request], memory)[0]

    def add_all(self, requests: Sequence[RowRequest], memory: AnyArrayMemory | None = None) -> list[Text]:
        """Several rows, each with its place in the memory. Their prompts are read in one call, which is much faster
        than one by one; so are those of all rows without memory that join in the same step."""
        if memory is not None and self.context is not None:
            raise ValueError("rows that look at a memory cannot slide out of their context")
        texts = [Text.of(request) for request in requests]
        prompts = [self._prompt(text) for text in texts]
        places: dict[Strategy, list[int]] = {}
        for place, request in enumerate(requests):
            places.setdefault(shared_part(request.strategy), []).append(place)
        if texts:
            groups = [group_of(shared, self.marks.end, texts, rows) for shared, rows in places.items()]
            self.waiting.append(Reading(memory, prompts, groups))
        return texts

    def step(self) -> list[Text]:
        """One more token in every row. The texts that have something new: of beams, only those that are over."""
        readings, self.waiting = self.waiting, []
        news = self._write() if self.groups else []
        for reading in as_few(readings):
            news += self._read(reading)
        return news

    def drop(self, text: Text) -> None:
        """End a text where it is; its rows leave the decoder's state in the next step."""
        text.over = True
        for group in (*self.groups.values(), *(group for reading in self.waiting for group in reading.groups)):
            if text in group.texts:
                group.keep([place for place, other in enumerate(group.texts) if other is not text])
        self.waiting = [reading for reading in self.waiting if any(group.texts for group in reading.groups)]
        self._leave()

    def _prompt(self, text: Text) -> Sequence[int]:
        """What the decoder reads before a text's first token: the end of it, where all is too long."""
        prompt = [*text.request.prompt, *text.request.prefix]
        if self.context is not None and len(prompt) > self.context:
            prompt = prompt[-self._half() :]
        text.held = len(prompt)
        return prompt

    def _half(self) -> int:
        return max(1, (self.context or 0) // 2)

    def _write(self) -> list[Text]:
        """The next token of the rows that have written before."""
        assert self.state is not None
        groups = list(self.groups.values())
        if self.moved:
            self.state = self.state.reorder(joined([group.rows for group in groups]))
            number_rows(groups)
            self.moved = False
        logits_BV, self.state = self.decoder.step(joined([group.tokens for group in groups]), self.state)
        news = self._choose(groups, logits_BV)
        if self.moved:
            self._leave()
        return news

    def _read(self, reading: Reading) -> list[Text]:
        """The first token of rows that join, and the next one of those that read their second half again."""
        logits_BV, state = write_all(self.decoder, reading.memory, reading.prompts)
        news = self._choose(reading.groups, logits_BV)
        staying = [group for group in reading.groups if group.texts]
        if not staying:
            return news
        before = 0 if self.state is None else self.state.rows
        self.state = state if self.state is None else self.state.join(state)
        for group in staying:
            group.rows = group.rows + before
            if group.shared in self.groups:
                self.groups[group.shared].join(group)
            else:
                self.groups[group.shared] = group
        self.moved = True
        return news

    def _choose(self, groups: Iterable[Group], logits_BV: Floats) -> list[Text]:
        """Every group by its part of the logits: its rows stand side by side."""
        forbid(logits_BV, self.forbidden)
        news: list[Text] = []
        first = 0
        for group in groups:
            rows = group.rows
            news += group.choose(logits_BV[first : first + len(rows)])
            first += len(rows)
            if self.context is not None:
                self._slide(group, self.context)
            self.moved = self.moved or group.rows is not rows
        return news

    def _slide(self, group: Group, context: int) -> None:
        """Texts that fill the context read their second half again, and join anew."""
        staying: list[int] = []
        full: list[int] = []
        for place, text in enumerate(group.texts):
            text.held += 1
            (full if text.held > context else staying).append(place)
        if not full:
            return
        part = group.split(full)
        group.keep(staying)
        for text in part.texts:
            text.held = self._half()
        windows = part.windows(self._half())
        part.rows = np.arange(len(windows))
        self.waiting.append(Reading(None, windows, [part]))

    def _leave(self) -> None:
        """Groups without texts go, and with the last one the state."""
        self.groups = {shared: group for shared, group in self.groups.items() if group.texts}
        self.moved = True
        if not self.groups:
            self.state = None
