"""Acting in worlds, many side by side: what is seen goes into the model, what it chooses goes into the world."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from saccade.arch.encoder_decoder import EncoderDecoderConfig
from saccade.arch.front_end import PictureFrontEnd
from saccade.axes import Actions, Axis, Grid, Pieces
from saccade.decode.choose import log_sum_exp
from saccade.decode.hypothesis import NEVER
from saccade.errors import UserError
from saccade.folder import ModelFolder
from saccade.look.record import LayerLooks, Looks
from saccade.pipelines.pipeline import Report, unreported
from saccade.runtime.acting import Acting, complaint_about
from saccade.runtime.contract import Floats, How
from saccade.runtime.open import SequenceRuntime
from saccade.runtime.watch import edit_here, watching
from saccade.sites import COMMAND, WORLD
from saccade.sources.text import pad_sources
from saccade.tokens.vocabulary import Vocabulary, read_vocabulary
from saccade.worlds.contract import Effect, View, World

STOPPED = "(stops)"
AT_ONCE = 128
"""Worlds that are acted in side by side."""


@dataclass
class Episode:
    """What was done in one world."""

    command: str
    """As it was read."""
    ids: list[int] = field(repr=False)
    """Its tokens."""
    views: list[View] = field(default_factory=list, repr=False)
    """What was known before each choice."""
    actions: list[str] = field(default_factory=list)
    logprob: float = 0.0
    """Of all choices, natural."""
    reward: float = 0.0
    """The sum of all."""
    ended: bool = False
    """It stopped, or the world was over; else it was cut off."""
    looks: dict[str, list[Floats]] = field(default_factory=dict, repr=False)
    """For every choice the weights over each memory, if they were asked for."""

    @property
    def choices(self) -> list[str]:
        """All that was chosen: to stop is a choice, too."""
        return [*self.actions, STOPPED][: len(self.views)]


class Actor:
    """A model that acts, with the names of what it can do."""

    def __init__(
        self, runtime: SequenceRuntime, vocabulary: Vocabulary, actions: Sequence[str], *, blind: bool = False
    ) -> None:
        """`blind`: all it sees is black."""
        self.acting, self.vocabulary, self.blind = Acting(runtime), vocabulary, blind
        self.actions = tuple(actions)
        self.ids = [vocabulary.encode([action])[0][0] for action in actions]

    @classmethod
    def open(
        cls, folder: ModelFolder, actions: Sequence[str], how: How | None = None, *, blind: bool = False
    ) -> "Actor":
        """The model of a folder."""
        vocabulary = read_vocabulary(folder.tokenizer, folder.path / "tokenizer.json", marks=folder.marks)
        if vocabulary.words is None or not set(actions) <= vocabulary.words:
            raise UserError(f"{folder.path}: its vocabulary lacks actions: {', '.join(actions)}")
        config = EncoderDecoderConfig.read(folder.config.model, where=folder.where)
        if complaint := complaint_about(config):
            raise UserError(f"{folder.where}: {complaint}")
        runtime = SequenceRuntime(config, folder.tensors(config.weights(len(vocabulary))), how)
        return cls(runtime, vocabulary, actions, blind=blind)

    @property
    def grid(self) -> Grid:
        """The fields of what is seen."""
        front = self.acting.runtime.config.readers[WORLD].front_end
        assert isinstance(front, PictureFrontEnd)
        return Grid(height=front.grid[0], width=front.grid[1])

    def act(
        self,
        worlds: Sequence[World],
        views: Sequence[View],
        limit: int,
        *,
        look: bool = False,
        keep: bool = False,
        report: Report = unreported,
    ) -> list[Episode]:
        """Go on from each world's first view until it is over, or until the model stops, or for `limit` actions. The
        commands' words are known ones. `keep`: all views, also those that were not looked at for a picture."""
        episodes: list[Episode] = []
        for first in range(0, len(worlds), AT_ONCE):
            part = slice(first, first + AT_ONCE)
            episodes += self._side_by_side(worlds[part], views[part], limit, look=look, keep=keep)
            report(len(episodes), len(worlds))
        return episodes

    @property
    def view(self) -> tuple[int, int, int]:
        """Height, width and channels of what is seen."""
        front = self.acting.runtime.config.readers[WORLD].front_end
        assert front.kind in ("patches", "convolutions")
        return front.height, front.width, front.channels

    def glimpse(self, view: View) -> Episode:
        """The first choice alone, with its looks; the world does not go on."""
        return self._side_by_side([_Still(self.actions)], [view], 1, look=True, keep=True)[0]

    def next_action(self, view: View) -> list[tuple[str, float]]:
        """All actions with their probabilities, likeliest first: what is done first after a command."""
        marks, ids = self.vocabulary.marks, self.vocabulary.read([view.command])
        state = self.acting.start(*pad_sources(ids, marks), self._pictures([view]))
        logits_BV, _ = self.acting.step(np.array([marks.start]), state)
        chances = np.exp(logits_BV[0, self.ids] - log_sum_exp(logits_BV[:, self.ids])[0])
        return [(self.actions[i], float(chances[i])) for i in np.argsort(-chances, kind="stable").tolist()]

    def _side_by_side(
        self, worlds: Sequence[World], views: Sequence[View], limit: int, *, look: bool, keep: bool
    ) -> list[Episode]:
        marks = self.vocabulary.marks
        ids = self.vocabulary.read([view.command for view in views])
        episodes = [Episode(view.command, some) for view, some in zip(views, ids, strict=True)]
        rows, seen = list(range(len(worlds))), list(views)
        state = self.acting.start(*pad_sources(ids, marks), self._pictures(seen)) if rows else None
        tokens_B, first = np.full(len(rows), marks.start), True
        while rows and state is not None:
            if not first:
                state = self.acting.see(self._pictures(seen), state)
            first = False
            with watching(edit_here()) as heard:
                logits_BV, state = self.acting.step(tokens_B, state)
            for place, row in enumerate(rows):
                episodes[row].views.append(seen[place] if keep or look else _NOTHING)
                for one in heard if look else ():
                    if one.kind == "cross":
                        episodes[row].looks.setdefault(one.memory, []).append(one.weights_BNTS[place].mean(axis=(0, 1)))
            tokens_B, logprobs_B = self._choose(logits_BV, [worlds[row].ends for row in rows])
            going = []
            for place, row in enumerate(rows):
                episode = episodes[row]
                episode.logprob += float(logprobs_B[place])
                if tokens_B[place] == marks.end:
                    episode.ended = True
                    continue
                action = self.ids.index(int(tokens_B[place]))
                episode.actions.append(self.actions[action])
                done = worlds[row].step(action)
                episode.reward += done.reward
                seen[place] = done.view
                if done.over:
                    episode.ended = True
                elif len(episode.actions) < limit:
                    going.append(place)
            if len(going) < len(rows):
                rows, seen = [rows[place] for place in going], [seen[place] for place in going]
                state, tokens_B = state.reorder(np.array(going, dtype=np.int64)), tokens_B[going]
        return episodes

    def _choose(self, logits_BV: Floats, ends: Sequence[bool]) -> tuple[np.ndarray, np.ndarray]:
        """The likeliest action of each row, or to stop, where the world does not end by itself."""
        allowed_BV = np.zeros(logits_BV.shape, dtype=bool)
        allowed_BV[:, self.ids] = True
        allowed_BV[:, self.vocabulary.marks.end] = [not one for one in ends]
        logits_BV = np.where(allowed_BV, logits_BV, NEVER)
        tokens_B = logits_BV.argmax(axis=1)
        logprobs_B = logits_BV[np.arange(len(tokens_B)), tokens_B] - log_sum_exp(logits_BV)[:, 0]
        return tokens_B, logprobs_B

    def _pictures(self, views: Sequence[View]) -> np.ndarray:
        pictures_BHWC = np.stack([view.picture_HWC for view in views])
        return np.zeros_like(pictures_BHWC) if self.blind else pictures_BHWC

    def words_of(self, episode: Episode) -> tuple[str, ...]:
        """The words of its command, the end mark too."""
        return Pieces.of(self.vocabulary, episode.ids, end=True).labels

    def looks_of(self, episode: Episode) -> Looks:
        """Where it looked in an episode that was acted with `look`: words and fields, for every choice."""
        words = Pieces.of(self.vocabulary, episode.ids, end=True)
        axes: dict[str, Axis] = {COMMAND: words, WORLD: self.grid}
        done = Actions(labels=tuple(episode.choices))
        layers = [
            LayerLooks(
                name=f"decoder.cross_attention_{memory}",
                kind="cross",
                memory=memory,
                weights_NTS=np.stack(weights)[None],
                rows=done,
                columns=axes[memory],
            )
            for memory, weights in episode.looks.items()
        ]
        return Looks(tuple(layers), 1)


@dataclass(frozen=True)
class _Still:
    """A world in which nothing changes."""

    actions: Sequence[str]
    ends: bool = True

    def reset(self, seed: int) -> View:
        return _NOTHING

    def step(self, action: int) -> Effect:
        return Effect(_NOTHING, over=True)


_NOTHING = View("", np.zeros(0, dtype=np.uint8))
