"""Recurrent encoder and decoder in plain NumPy, from a fixed vector to attention; PyTorch's modules are its oracle."""

from dataclasses import dataclass, replace

import numpy as np

from saccade.arch.recurrent import CARRIES, CellName, RecurrentDecoderConfig, RecurrentEncoderConfig
from saccade.runtime.contract import ArrayMemory, Booleans, Floats, Ids, join_memories, last_of
from saccade.runtime.layers import LOWEST, Weights, linear, part_of, softmax
from saccade.runtime.watch import edited_mask, heads_off, tell, watched
from saccade.sites import Site

Carried = tuple[Floats, ...]
"""What is carried on, [B, H] each; the first is also what others see."""
NAME, SITE = "decoder.cross_attention", Site.cross()


def sigmoid(x: Floats) -> Floats:
    result: Floats = 0.5 * (1 + np.tanh(0.5 * x))
    return result


def advance(cell: CellName, weights: Weights, input_BG: Floats, carried: Carried) -> Carried:
    """One step of a cell; `input_BG` is its input layer's output. Gates stand in PyTorch's order."""
    state_BG = linear(weights, "state", carried[0])
    if cell == "lstm":
        let_in, keep, new, let_out = np.split(input_BG + state_BG, 4, axis=-1)
        inside = sigmoid(keep) * carried[1] + sigmoid(let_in) * np.tanh(new)
        return sigmoid(let_out) * np.tanh(inside), inside
    both = 2 * carried[0].shape[1]
    reset, hold = np.split(sigmoid(input_BG[:, :both] + state_BG[:, :both]), 2, axis=-1)
    fresh = np.tanh(input_BG[:, both:] + reset * state_BG[:, both:])
    return (fresh + hold * (carried[0] - fresh),)


class RecurrentReader:
    """A state is carried over the words; every word leaves the state it made."""

    def __init__(self, config: RecurrentEncoderConfig, weights: Weights) -> None:
        self.config, self.tokens = config, weights["embed.tokens.weight"]
        self.scale = np.float32(config.embed**0.5)
        self.layers = [
            [part_of(weights, f"layers.{layer}.{side}") for side in range(len(config.backwards))]
            for layer in range(config.layers)
        ]

    def __call__(self, source_MS: Ids, mask_MS: Booleans | None = None) -> ArrayMemory:
        real_MS = np.ones(source_MS.shape, dtype=bool) if mask_MS is None else mask_MS
        x: Floats = self.tokens[source_MS] * self.scale
        last: list[Floats] = []
        for layer in self.layers:
            sides = []
            for weights, backwards in zip(layer, self.config.backwards, strict=True):
                states_MSH, carried = self._read(weights, x, real_MS, backwards=backwards)
                sides.append(states_MSH)
                last += carried
            x = np.concatenate(sides, axis=-1)
        return ArrayMemory(x, mask_MS, np.concatenate(last, axis=-1))

    def _read(self, weights: Weights, x: Floats, real_MS: Booleans, *, backwards: bool) -> tuple[Floats, Carried]:
        inputs_MSG = linear(weights, "input", x)
        width = weights["state.weight"].shape[1]
        carried: Carried = (np.zeros((len(x), width), dtype=np.float32),) * CARRIES[self.config.cell]
        states_MSH = np.zeros((*x.shape[:2], width), dtype=np.float32)
        for place in range(x.shape[1])[:: -1 if backwards else 1]:
            real_M1 = real_MS[:, place, None]
            after = advance(self.config.cell, weights, inputs_MSG[:, place], carried)
            # Padding changes nothing: a row's state waits for its next real word.
            carried = tuple(np.where(real_M1, new, old) for new, old in zip(after, carried, strict=True))
            states_MSH[:, place] = np.where(real_M1, carried[0], 0)
        return states_MSH, carried


@dataclass(frozen=True)
class RecurrentRows:
    """What is carried from step to step, what is fed into the next one, and each row's memory."""

    layers: list[Carried]
    fed_BE: Floats | None
    keys_BSA: Floats
    """Keys as the score wants them, prepared once."""
    values_BSD: Floats
    mask_BS: Booleans | None
    summary_BC: Floats

    @property
    def rows(self) -> int:
        return len(self.summary_BC)

    @property
    def nbytes(self) -> int:
        carried = [part for layer in self.layers for part in layer]
        return sum(part.nbytes for part in (*carried, self.keys_BSA, self.values_BSD, self.summary_BC))

    def reorder(self, rows: Ids) -> "RecurrentRows":
        return RecurrentRows(
            layers=[tuple(part[rows] for part in layer) for layer in self.layers],
            fed_BE=None if self.fed_BE is None else self.fed_BE[rows],
            keys_BSA=self.keys_BSA[rows],
            values_BSD=self.values_BSD[rows],
            mask_BS=None if self.mask_BS is None else self.mask_BS[rows],
            summary_BC=self.summary_BC[rows],
        )

    def repeat(self, times: int) -> "RecurrentRows":
        return self.reorder(np.arange(self.rows).repeat(times))

    def join(self, other: "RecurrentRows") -> "RecurrentRows":
        (keys, values), mask = join_memories(
            [self.keys_BSA, self.values_BSD], [other.keys_BSA, other.values_BSD], self.mask_BS, other.mask_BS
        )
        fed = None if self.fed_BE is None or other.fed_BE is None else np.concatenate([self.fed_BE, other.fed_BE])
        layers = [
            tuple(np.concatenate(parts) for parts in zip(mine, theirs, strict=True))
            for mine, theirs in zip(self.layers, other.layers, strict=True)
        ]
        return RecurrentRows(layers, fed, keys, values, mask, np.concatenate([self.summary_BC, other.summary_BC]))


class RecurrentWriter:
    """A state is carried over the words it writes; what it sees of the memory, and when, is the config's `context`."""

    def __init__(self, config: RecurrentDecoderConfig, weights: Weights) -> None:
        self.config, self.weights, self.tokens = config, weights, weights["embed.tokens.weight"]
        self.scale = np.float32(config.embed**0.5)
        self.layers = [part_of(weights, f"layers.{layer}") for layer in range(config.layers)]

    def start(self, memory: ArrayMemory | None, rows: int = 1) -> RecurrentRows:
        if memory is None:
            raise ValueError("a recurrent decoder starts from what an encoder read")
        config, summary_MF, states_MSD = self.config, memory.summary_MF, memory.states_MSD
        count = config.layers * CARRIES[config.cell]
        first = np.split(np.tanh(linear(self.weights, "begin", summary_MF)), count, axis=-1)
        prepared = config.attention in ("additive", "general")
        summarizes = "summarize.weight" in self.weights
        feeds = config.context == "feeding"
        state = RecurrentRows(
            layers=[tuple(first[layer :: config.layers]) for layer in range(config.layers)],
            fed_BE=np.zeros((len(summary_MF), config.embed), dtype=np.float32) if feeds else None,
            keys_BSA=linear(self.weights, "cross_attention.score.key", states_MSD) if prepared else states_MSD,
            values_BSD=states_MSD,
            mask_BS=memory.mask_MS,
            summary_BC=np.tanh(linear(self.weights, "summarize", summary_MF)) if summarizes else first[0],
        )
        return state.repeat(rows) if rows > 1 else state

    def extend(
        self, tokens_BT: Ids, lengths_B: Ids, state: RecurrentRows, *, every: bool = False
    ) -> tuple[Floats, RecurrentRows]:
        features, heard = [], []
        for t in range(tokens_BT.shape[1]):
            features_BE, weights_BS, after = self._write(tokens_BT[:, t], state)
            features.append(features_BE)
            heard.append(weights_BS)
            state = _chosen(t < np.asarray(lengths_B), after, state)
        _tell(heard)
        features_BTE = np.stack(features, axis=1)
        return linear(self.weights, "head", features_BTE if every else last_of(features_BTE, lengths_B)), state

    def step(self, tokens_B: Ids, state: RecurrentRows) -> tuple[Floats, RecurrentRows]:
        features_BE, weights_BS, after = self._write(tokens_B, state)
        _tell([weights_BS])
        return linear(self.weights, "head", features_BE), after

    def _write(self, tokens_B: Ids, state: RecurrentRows) -> tuple[Floats, Floats | None, RecurrentRows]:
        """What the output layer reads, the weights of the look, and the state after the word."""
        config, x_BE, weights_BS = self.config, self.tokens[tokens_B] * self.scale, None
        input_BG, seen_BD = linear(self.layers[0], "input", x_BE), None
        if config.context == "update":
            # The state before the step looks, and what it saw goes into the step (Bahdanau et al. 2015, A.1.2).
            seen_BD, weights_BS = self._look(state.layers[-1][0], state)
            input_BG = input_BG + linear(self.weights, "beside", seen_BD)
        elif state.fed_BE is not None:
            input_BG = input_BG + linear(self.weights, "beside", state.fed_BE)
        layers: list[Carried] = []
        for number, (weights, carried) in enumerate(zip(self.layers, state.layers, strict=True)):
            given = linear(weights, "input", layers[-1][0]) if number else input_BG
            layers.append(advance(config.cell, weights, given, carried))
        top_BH = layers[-1][0]
        if config.context in ("output", "feeding"):  # the state after the step looks (Luong et al. 2015, 3)
            seen_BD, weights_BS = self._look(top_BH, state)
        parts = [top_BH, *([] if seen_BD is None else [seen_BD]), *([x_BE] if config.context == "update" else [])]
        features_BE: Floats = np.tanh(linear(self.weights, "readout", np.concatenate(parts, axis=-1)))
        fed = features_BE if state.fed_BE is not None else None
        return features_BE, weights_BS, replace(state, layers=layers, fed_BE=fed)

    def _look(self, query_BH: Floats, state: RecurrentRows) -> tuple[Floats, Floats | None]:
        """What a state sees of the memory, and with which weights; without attention always the same."""
        if not self.config.attends:
            return state.summary_BC, None
        if self.config.attention == "additive":
            pairs = linear(self.weights, "cross_attention.score.query", query_BH)[:, None] + state.keys_BSA
            scores_BS = linear(self.weights, "cross_attention.score.energy", np.tanh(pairs))[..., 0]
        else:
            scores_BS = (state.keys_BSA @ query_BH[:, :, None])[..., 0]
            if self.config.attention == "scaled-dot":
                scores_BS = scores_BS * np.float32(query_BH.shape[1] ** -0.5)
        allowed = edited_mask(SITE, state.mask_BS, scores_BS.shape[1])
        weights_BS = softmax(scores_BS if allowed is None else np.where(allowed, scores_BS, LOWEST))
        if allowed is not None:
            weights_BS = np.where(allowed, weights_BS, np.float32(0))
        seen_BD: Floats = (weights_BS[:, None] @ state.values_BSD)[:, 0]
        if heads_off(NAME, 1):
            seen_BD = np.zeros_like(seen_BD)
        return seen_BD, weights_BS


def _chosen(here_B: Booleans, mine: RecurrentRows, others: RecurrentRows) -> RecurrentRows:
    """The rows marked True, and the other state's rows elsewhere."""
    if here_B.all():
        return mine
    layers = [
        tuple(np.where(here_B[:, None], new, old) for new, old in zip(layer, before, strict=True))
        for layer, before in zip(mine.layers, others.layers, strict=True)
    ]
    fed = None
    if mine.fed_BE is not None and others.fed_BE is not None:
        fed = np.where(here_B[:, None], mine.fed_BE, others.fed_BE)
    return replace(mine, layers=layers, fed_BE=fed)


def _tell(heard: list[Floats | None]) -> None:
    """The watcher hears all steps as one look of one head."""
    weights = [one for one in heard if one is not None]
    if weights and watched():
        tell(NAME, SITE, np.stack(weights, axis=1)[:, None])
