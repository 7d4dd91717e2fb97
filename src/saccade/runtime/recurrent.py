"""Recurrent encoder and decoder in plain NumPy, from a fixed vector to attention; PyTorch's modules are its oracle."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from saccade.arch.memories import named
from saccade.arch.recurrent import CARRIES, CellName, RecurrentDecoderConfig, RecurrentEncoderConfig
from saccade.runtime.contract import (
    AnyArrayMemory,
    ArrayMemory,
    Booleans,
    Floats,
    Ids,
    Source,
    last_of,
    memories_by_name,
)
from saccade.runtime.front_end import pictures_of
from saccade.runtime.layers import LOWEST, Weights, linear, part_of, sigmoid, softmax
from saccade.runtime.recurrent_state import Carried, RecurrentRows, SeenRows
from saccade.runtime.sound import paired
from saccade.runtime.watch import edited_mask, heads_off, tell, tell_arrays, watched
from saccade.sites import SOURCE, Site

Weighed = dict[str, Floats]
"""The weights [B, S] of one step's looks, by the name of the memory."""


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

    def __init__(self, config: RecurrentEncoderConfig, weights: Weights, memory: str = SOURCE) -> None:
        self.config, self.pictures = config, pictures_of(config.front_end, weights, memory)
        if self.pictures is None:
            self.tokens, self.scale = weights["embed.tokens.weight"], np.float32(config.embed**0.5)
        self.layers = [
            [part_of(weights, f"layers.{layer}.{side}") for side in range(len(config.backwards))]
            for layer in range(config.layers)
        ]

    def __call__(self, source_MS: Source, mask_MS: Booleans | None = None) -> ArrayMemory:
        grid = None
        if self.pictures is not None:
            x, mask_MS, grid = self.pictures(source_MS, mask_MS)
        else:
            x = self.tokens[source_MS] * self.scale
        real_MS = np.ones(x.shape[:2], dtype=bool) if mask_MS is None else mask_MS
        last: list[Floats] = []
        for number, layer in enumerate(self.layers):
            if self.config.halves(number):
                x, real_MS = paired(x, real_MS)
            sides = []
            for weights, backwards in zip(layer, self.config.backwards, strict=True):
                states_MSH, carried = self._read(weights, x, real_MS, backwards=backwards)
                sides.append(states_MSH)
                last += carried
            x = np.concatenate(sides, axis=-1)
        return ArrayMemory(x, None if mask_MS is None else real_MS, np.concatenate(last, axis=-1), grid)

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


class RecurrentWriter:
    """A state is carried over the words it writes; what it sees of the memories, and when, is the config's `context`.
    What it sees of several stands side by side."""

    def __init__(self, config: RecurrentDecoderConfig, weights: Weights, memories: Sequence[str] = (SOURCE,)) -> None:
        self.config, self.weights, self.tokens = config, weights, weights["embed.tokens.weight"]
        self.memories = memories
        self.scale = np.float32(config.embed**0.5)
        self.layers = [part_of(weights, f"layers.{layer}") for layer in range(config.layers)]

    def start(self, memory: AnyArrayMemory | None, rows: int = 1) -> RecurrentRows:
        if memory is None:
            raise ValueError("a recurrent decoder starts from what an encoder read")
        config, given = self.config, memories_by_name(memory, self.memories)
        summary_MF = np.concatenate([one.summary_MF for one in given.values()], axis=-1)
        count = config.layers * CARRIES[config.cell]
        first = np.split(np.tanh(linear(self.weights, "begin", summary_MF)), count, axis=-1)
        summarizes = "summarize.weight" in self.weights
        feeds = config.context == "feeding"
        state = RecurrentRows(
            layers=[tuple(first[layer :: config.layers]) for layer in range(config.layers)],
            fed_BE=np.zeros((len(summary_MF), config.embed), dtype=np.float32) if feeds else None,
            seen={name: self._prepared(name, one) for name, one in given.items()} if config.attends else {},
            summary_BC=np.tanh(linear(self.weights, "summarize", summary_MF)) if summarizes else first[0],
        )
        return state.repeat(rows) if rows > 1 else state

    def _prepared(self, name: str, memory: ArrayMemory) -> SeenRows:
        keys_MSA = memory.states_MSD
        if self.config.attention in ("additive", "general"):
            keys_MSA = linear(self.weights, f"{named('cross_attention', name)}.score.key", keys_MSA)
        return SeenRows(keys_MSA, memory.states_MSD, memory.mask_MS)

    def see(self, memories: Mapping[str, ArrayMemory], state: RecurrentRows) -> RecurrentRows:
        """The state with these memories, one a row, in place of those of the same names: what is there to be looked at
        changes from step to step, as a world does."""
        seen = {name: self._prepared(name, memory) for name, memory in memories.items()}
        return replace(state, seen={**state.seen, **seen})

    def extend(
        self, tokens_BT: Ids, lengths_B: Ids, state: RecurrentRows, *, every: bool = False
    ) -> tuple[Floats, RecurrentRows]:
        features, heard = [], []
        for t in range(tokens_BT.shape[1]):
            features_BE, weighed, after = self._write(tokens_BT[:, t], state)
            features.append(features_BE)
            heard.append(weighed)
            state = after.where(t < np.asarray(lengths_B), state)
        _tell(heard)
        features_BTE = np.stack(features, axis=1)
        return linear(self.weights, "head", features_BTE if every else last_of(features_BTE, lengths_B)), state

    def step(self, tokens_B: Ids, state: RecurrentRows) -> tuple[Floats, RecurrentRows]:
        features_BE, weighed, after = self._write(tokens_B, state)
        _tell([weighed])
        return linear(self.weights, "head", features_BE), after

    def _write(self, tokens_B: Ids, state: RecurrentRows) -> tuple[Floats, Weighed, RecurrentRows]:
        """What the output layer reads, the weights of the looks, and the state after the word."""
        config, x_BE = self.config, self.tokens[tokens_B] * self.scale
        weighed: Weighed = {}
        input_BG, seen_BD = linear(self.layers[0], "input", x_BE), None
        if config.context == "update":
            # The state before the step looks, and what it saw goes into the step (Bahdanau et al. 2015, A.1.2).
            seen_BD, weighed = self._look(state.layers[-1][0], state)
            input_BG = input_BG + linear(self.weights, "beside", seen_BD)
        elif state.fed_BE is not None:
            input_BG = input_BG + linear(self.weights, "beside", state.fed_BE)
        layers: list[Carried] = []
        for number, (weights, carried) in enumerate(zip(self.layers, state.layers, strict=True)):
            given = linear(weights, "input", layers[-1][0]) if number else input_BG
            layers.append(advance(config.cell, weights, given, carried))
        top_BH = layers[-1][0]
        if config.context in ("output", "feeding"):  # the state after the step looks (Luong et al. 2015, 3)
            seen_BD, weighed = self._look(top_BH, state)
        parts = [top_BH, *([] if seen_BD is None else [seen_BD]), *([x_BE] if config.context == "update" else [])]
        features_BE: Floats = np.tanh(linear(self.weights, "readout", np.concatenate(parts, axis=-1)))
        fed = features_BE if state.fed_BE is not None else None
        return features_BE, weighed, replace(state, layers=layers, fed_BE=fed)

    def _look(self, query_BH: Floats, state: RecurrentRows) -> tuple[Floats, Weighed]:
        """What a state sees of all memories, and with which weights; without attention always the same."""
        if not self.config.attends:
            return state.summary_BC, {}
        looks = {name: self._look_at(name, query_BH, seen) for name, seen in state.seen.items()}
        contexts = np.concatenate([seen_BD for seen_BD, _ in looks.values()], axis=-1)
        return contexts, {name: weights_BS for name, (_, weights_BS) in looks.items()}

    def _look_at(self, memory: str, query_BH: Floats, seen: SeenRows) -> tuple[Floats, Floats]:
        score = f"{named('cross_attention', memory)}.score"
        if self.config.attention == "additive":
            pairs = linear(self.weights, f"{score}.query", query_BH)[:, None] + seen.keys_BSA
            scores_BS = linear(self.weights, f"{score}.energy", np.tanh(pairs))[..., 0]
        else:
            scores_BS = (seen.keys_BSA @ query_BH[:, :, None])[..., 0]
            if self.config.attention == "scaled-dot":
                scores_BS = scores_BS * np.float32(query_BH.shape[1] ** -0.5)
        allowed = edited_mask(Site.cross(memory), seen.mask_BS, scores_BS.shape[1])
        weights_BS = softmax(scores_BS if allowed is None else np.where(allowed, scores_BS, LOWEST))
        if allowed is not None:
            weights_BS = np.where(allowed, weights_BS, np.float32(0))
        seen_BD: Floats = (weights_BS[:, None] @ seen.values_BSD)[:, 0]
        if heads_off(_site_name(memory), 1):
            seen_BD = np.zeros_like(seen_BD)
        parts = {"q": query_BH[:, None], "k": seen.keys_BSA, "v": seen.values_BSD, "scores": scores_BS[:, None]}
        parts |= {"softmax": weights_BS[:, None], "context": seen_BD[:, None]}
        tell_arrays(_site_name(memory), {name: part[:, None] for name, part in parts.items()})  # one head
        return seen_BD, weights_BS


def _tell(heard: Sequence[Weighed]) -> None:
    """The watcher hears all steps as one look of one head at each memory."""
    for memory in heard[0] if watched() else ():
        weights_BTS = np.stack([step[memory] for step in heard], axis=1)
        tell(_site_name(memory), Site.cross(memory), weights_BTS[:, None])


def _site_name(memory: str) -> str:
    return f"decoder.{named('cross_attention', memory)}"
