"""A loaded language model: a beginning in, how it goes on out, at once or as it is written."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from saccade.data.windows import window_starts
from saccade.decode.choose import log_sum_exp
from saccade.decode.continuous import write_on
from saccade.decode.sample import Draw, Drawing
from saccade.errors import UserError, WrongUse
from saccade.folder import ModelFolder
from saccade.look.record import END_LABEL, TextLooks
from saccade.pipelines.opening import open_language
from saccade.pipelines.pipeline import Pipeline, Report, Request, Values, unreported
from saccade.runtime.contract import How
from saccade.runtime.open import Choice, LanguageRuntime
from saccade.tokens.vocabulary import Vocabulary, read_vocabulary

UNFINISHED = "\ufffd"
"""What the first bytes of a character look like while the others are not there yet."""


@dataclass(frozen=True)
class Completion:
    """A beginning, and how the model went on."""

    prompt: str
    text: str
    """What was written, without the prompt."""
    logprob: float
    """Natural log of its probability under the model, whatever was filtered when it was drawn."""
    ended: str
    """end: the model ended it; stop: a stop string; length: the limit."""
    prompt_ids: list[int]
    ids: list[int]
    completer: "Completer" = field(repr=False)

    @property
    def score(self) -> float:
        return self.logprob

    @property
    def best(self) -> list["Completion"]:
        return [self]

    @cached_property
    def looks(self) -> TextLooks:
        return self.completer.look(self)

    def record(self) -> Values:
        return {
            "prompt": self.prompt,
            "text": self.text,
            "logprob": round(self.logprob, 5),
            "tokens": len(self.ids),
            "ended": self.ended,
        }


@dataclass
class _Text:
    """One text under way."""

    number: int
    continues: bool
    """Whether it goes on from a prompt, or begins a text."""
    ids: list[int] = field(default_factory=list)
    logprob: float = 0.0
    ended: str = ""
    shown: int = 0
    """Characters already given away."""


class Completer(Pipeline[Completion]):
    """Completes: `completer("Once upon a time")`, or a list of beginnings."""

    rows_at_once = 32
    default_tokens = 200

    def __init__(
        self, model: LanguageRuntime, vocabulary: Vocabulary, *, marked: bool, lowercase: bool = False
    ) -> None:
        """`marked`: the model knows documents, which begin with <s> and end with </s>. `lowercase`: it has never seen
        a capital, and reads prompts without."""
        self.model = model
        self.vocabulary = vocabulary
        self.marked, self.lowercase = marked, lowercase
        self.context = model.context

    @classmethod
    def open(cls, folder: ModelFolder, how: How | None = None) -> "Completer":
        """The model of a folder."""
        where, path = folder.path / "config.json", folder.path / "tokenizer.json"
        marked, lowercase = folder.config.get("marked"), folder.config.get("lowercase") is True
        if not isinstance(marked, bool):
            raise UserError(f"{where}: marked is {marked!r}, not true or false")
        vocabulary = read_vocabulary(folder.tokenizer, path, spaced=False, marks=folder.marks)
        return cls(open_language(folder, vocabulary, how), vocabulary, marked=marked, lowercase=lowercase)

    @property
    def choice(self) -> Choice:
        return self.model.choice

    def answer(
        self,
        texts: Sequence[str],
        request: Request,
        *,
        numbers: Sequence[int] | None = None,
        report: Report = unreported,
    ) -> list[Completion | UserError]:
        places = list(range(len(texts))) if numbers is None else list(numbers)
        answers: list[Completion | UserError] = []
        for first in range(0, len(texts), self.rows_at_once):
            part = slice(first, first + self.rows_at_once)
            answers += self._complete(texts[part], places[part], request)
            report(len(answers), len(texts))
        return answers

    def stream(self, prompt: str, request: Request, number: int = 0) -> Iterator[str]:
        """The completion of one prompt, piece by piece as it is written."""
        text = _Text(number, bool(prompt))
        for written in self._write([self.begin(prompt)], [text], request):
            if written:
                yield from filter(None, [self._news(text, request)])
        yield from filter(None, [self._news(text, request)])

    def begin(self, prompt: str) -> list[int]:
        """The ids of a prompt as the model reads it."""
        ids = self.vocabulary.encode([prompt.lower() if self.lowercase else prompt])[0] if prompt else []
        if self.marked:
            return [self.vocabulary.marks.begin, *ids]
        if not ids and self.vocabulary.characters is not None and "\n" not in self.vocabulary.characters:
            raise UserError("this model knows neither documents nor lines: give it something to go on from")
        # A model without marks has to read something before it can write: the end of a line before this one.
        return ids or self.vocabulary.encode(["\n"])[0]

    def slides(self, prompt: str, request: Request) -> str | None:
        """What to tell somebody whose prompt does not fit, or will not with what is to be written."""
        length, most = len(self.begin(prompt)), request.max_tokens or self.default_tokens
        if length > self.context:
            return f"the prompt has {length:,} tokens; the model reads the last {max(1, self.context // 2):,} of them"
        if length + most > self.context:
            return (
                f"{length:,} + {most:,} tokens are more than the model's context of {self.context:,}; "
                f"past it, it remembers the last {max(1, self.context // 2):,} and goes on"
            )
        return None

    def _complete(self, prompts: Sequence[str], places: list[int], request: Request) -> list[Completion | UserError]:
        answers: list[Completion | UserError] = []
        rows: dict[int, list[int]] = {}
        for row, prompt in enumerate(prompts):
            try:
                rows[row] = self.begin(prompt)
                answers.append(UserError("not answered"))
            except UserError as error:
                answers.append(error)
        texts = [_Text(places[row], bool(prompts[row])) for row in rows]
        if texts:
            for _ in self._write(list(rows.values()), texts, request):
                pass
        for (row, ids), text in zip(rows.items(), texts, strict=True):
            whole = _cut(self.vocabulary.decode(text.ids, continues=text.continues), request.stop)[0]
            answers[row] = Completion(prompts[row], whole, text.logprob, text.ended, ids, text.ids, self)
        return answers

    def _write(self, rows: list[list[int]], texts: list[_Text], request: Request) -> Iterator[bool]:
        """Write all texts to their ends, a token of each at a time."""
        drawing = Drawing(
            temperature=request.temperature,
            top_k=request.top_k,
            top_p=request.top_p,
            repetition=1.0 if request.repetition is None else request.repetition,
            seed=request.seed or 0,
        )
        most = self.default_tokens if request.max_tokens is None else request.max_tokens
        if most < 1:
            raise WrongUse(f"at least 1 token must be written, not {most}")
        if "" in request.stop:
            raise WrongUse("a stop string must not be empty: it would end every text before it begins")
        draw, marks = Draw(drawing, [text.number for text in texts], rows), self.vocabulary.marks
        over: set[int] = set()
        decoder = self.model.decoder
        for written in write_on(decoder, rows, context=self.context, marks=marks, choose=draw, over=over):
            for one in written:
                text = texts[one.text]
                text.logprob += one.logprob
                if one.token == marks.end:
                    text.ended = "end"
                else:
                    text.ids.append(one.token)
                    text.ended = self._ended(text, request.stop, most)
                if text.ended:
                    over.add(one.text)
            yield True

    def _ended(self, text: _Text, stop: tuple[str, ...], most: int) -> str:
        if stop:
            # A stop string ends at the newest token: only the last tokens need to be read again.
            reach = max(len(s.encode()) for s in stop) + 8
            continues = text.continues or len(text.ids) > reach
            if _cut(self.vocabulary.decode(text.ids[-reach:], continues=continues), stop)[1]:
                return "stop"
        return "length" if len(text.ids) >= most else ""

    def _news(self, text: _Text, request: Request) -> str:
        """What can be shown and was not: half a character, or what may become a stop string, waits."""
        whole, stopped = _cut(self.vocabulary.decode(text.ids, continues=text.continues), request.stop)
        if not text.ended and not stopped:
            whole = whole.rstrip(UNFINISHED)
            held = max((_overlap(whole, stop) for stop in request.stop), default=0)
            whole = whole[: len(whole) - held]
        news = whole[text.shown :]
        text.shown = max(text.shown, len(whole))
        return news

    def surprises(self, text: str) -> tuple[list[str], list[float | None]]:
        """Every piece of a text and the natural log of its probability given what stands before it; None where nothing
        does.

        Longer than the context, the text is read in windows that overlap by half, so that each piece has a past.
        """
        if not text:
            return [], []
        ids = self.begin(text)
        pieces = self._cut_up(ids[1:] if self.marked else ids)
        # Without a mark nothing stands before the first token: it cannot be predicted.
        logprobs: list[float | None] = [] if self.marked else [None]
        for start, first in window_starts(len(ids) - 1, self.context, max(1, self.context // 2)):
            window = np.array(ids[start : start + self.context + 1])
            logits_TV = self.model.logits(window[None, :-1])[0]
            places = np.arange(first - start, len(window) - 1)
            found = logits_TV[places, window[places + 1]] - log_sum_exp(logits_TV[places])[:, 0]
            logprobs += found.tolist()
        return pieces, logprobs

    def _cut_up(self, ids: list[int]) -> list[str]:
        """Each id's part of the text; a character made of several stands at the last of them."""
        pieces: list[str] = []
        waiting: list[int] = []
        for place, i in enumerate(ids):
            waiting.append(i)
            piece = self.vocabulary.decode(waiting, continues=len(waiting) <= place)
            whole = not piece.endswith(UNFINISHED) or place == len(ids) - 1
            pieces.append(piece if whole else "")
            waiting = [] if whole else waiting
        return pieces

    def look(self, completion: Completion) -> TextLooks:
        """Every look of a completion, heard in one pass over it and its prompt, as far back as the context goes."""
        ids = [*completion.prompt_ids, *completion.ids][-self.context :]
        weights = self.model.look(np.array([ids])).of("decoder")[:, 0]
        begin = self.vocabulary.marks.begin
        pieces = [
            ("(begin)" if i == begin else piece) for i, piece in zip(ids, self.vocabulary.pieces(ids), strict=True)
        ]
        return TextLooks(
            source=pieces,
            # The look from position t decides the token that comes next, so rows are labelled with that token.
            target=[*pieces[1:], END_LABEL],
            cross=np.zeros((0, 1, 1, 1)),
            encoder=np.zeros((0, 1, 1, 1)),
            decoder=weights,
            layer=max(1, (weights.shape[0] + 1) // 2),
            drawn="decoder",
        )


def _cut(text: str, stops: Sequence[str]) -> tuple[str, bool]:
    """The text up to the first stop string in it, and whether there was one."""
    places = [place for stop in stops if (place := text.find(stop)) >= 0]
    return (text[: min(places)], True) if places else (text, False)


def _overlap(text: str, stop: str) -> int:
    """How many of the text's last characters may be the beginning of the stop string."""
    return next((size for size in range(min(len(stop) - 1, len(text)), 0, -1) if text.endswith(stop[:size])), 0)
