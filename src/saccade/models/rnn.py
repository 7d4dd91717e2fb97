"""Recurrent encoder and decoder: the line from a fixed vector to attention.

Sutskever et al. 2014: the encoder's last state starts the decoder. Cho et al. 2014: the decoder sees it at every step.
Bahdanau et al. 2015: it sees a fresh weighted average of all states at every step. Luong et al. 2015: it looks after
the step, at its output, and may feed what it saw into the next one.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import cast

import torch
from torch import Tensor, nn

from saccade.arch.memories import named
from saccade.arch.recurrent import RecurrentDecoderConfig, RecurrentEncoderConfig
from saccade.models.contract import AnyMemory, Decoder, Encoder, Memory, State, memories_by_name, rows_per_memory
from saccade.models.rnn_state import RecurrentLook, RecurrentState, Seen
from saccade.nn.dropout import Dropout
from saccade.nn.embed import Embedding
from saccade.nn.front_ends import AnyFrontEnd
from saccade.nn.masks import Keys
from saccade.nn.recurrent import CELLS, Carried, Cell, Packing, read, unroll
from saccade.nn.sound import paired


class Cells(nn.ModuleList):
    """A list of cells that knows it holds cells."""

    def __iter__(self) -> Iterator[Cell]:
        return cast(Iterator[Cell], super().__iter__())


class RecurrentEncoder(Encoder):
    """A state is carried over the words; every word leaves the state it made."""

    def __init__(self, config: RecurrentEncoderConfig, embed: Embedding | AnyFrontEnd) -> None:
        super().__init__()
        self.config, self.width = config, config.width
        self.embed = embed
        self.backwards = config.backwards
        cell, part = CELLS[config.cell], config.width // len(self.backwards)
        self.layers = nn.ModuleList()
        for number in range(config.layers):
            self.layers.append(Cells(cell(config.inputs(number), part) for _ in self.backwards))
        self.dropout = Dropout(config.dropout)

    def forward(self, source_MS: Tensor, mask_MS: Tensor | None = None) -> Memory:
        vectors = self.embed.read(source_MS, mask_MS)
        x, mask_MS = vectors.x_MSD, vectors.mask_MS
        real_MS = x.new_ones(x.shape[:2], dtype=torch.bool) if mask_MS is None else mask_MS
        packing = Packing.of(real_MS)
        last: list[Tensor] = []
        for number, layer in enumerate(self.layers):
            if self.config.halves(number):
                x, real_MS = paired(x, real_MS)
                packing = Packing.of(real_MS)
            sides = []
            for cell, backwards in zip(cast(Cells, layer), self.backwards, strict=True):
                states_MSH, carried = read(cell, x, packing, backwards=backwards)
                sides.append(states_MSH)
                last += carried
            x = self.dropout(torch.cat(sides, dim=-1))
        return Memory(x, None if mask_MS is None else real_MS, torch.cat(last, dim=-1), vectors.grid)


class RecurrentDecoder(Decoder):
    """A state is carried over the words it writes; what it sees of the memories, and when, is the config's `context`.

    What it sees of several memories, of these names and widths, stands side by side.
    """

    def __init__(
        self,
        config: RecurrentDecoderConfig,
        embed: Embedding,
        head: nn.Linear,
        memories: Mapping[str, int],
        summary_width: int,
    ) -> None:
        super().__init__()
        self.embed, self.head, self.context, self.embed_width = embed, head, config.context, config.embed
        self.memories, attends, memory_width = tuple(memories), config.attends, sum(memories.values())
        for name, width in memories.items() if attends else ():
            self.add_module(named("cross_attention", name), RecurrentLook(config.attention, config.width, width, name))
        cell = CELLS[config.cell]
        self.layers = Cells(
            cell(config.width if number else config.embed, config.width) for number in range(config.layers)
        )
        # The source's last states, through one matrix, are the first ones here: any encoder will do.
        self.begin = nn.Linear(summary_width, config.layers * cell.carries * config.width)
        self.summarize = nn.Linear(summary_width, config.width) if not attends and config.context != "none" else None
        seen, beside = config.seen_width(memory_width), config.beside_width(memory_width)
        # Apart from the first cell's own input, which is known for all steps before the first.
        self.beside = nn.Linear(beside, cell.gates * config.width, bias=False) if beside else None
        self.readout = nn.Linear(
            config.width + seen + (config.embed if config.context == "update" else 0), config.embed
        )
        self.dropout = Dropout(config.dropout)

    def features(self, tokens_BT: Tensor, memory: AnyMemory | None = None) -> Tensor:
        features_BTE, _ = self.write(tokens_BT, self.start(memory, rows_per_memory(tokens_BT, memory)))
        return features_BTE

    def start(self, memory: AnyMemory | None, rows: int = 1) -> RecurrentState:
        if memory is None:
            raise ValueError("a recurrent decoder starts from what an encoder read")
        given, looks = memories_by_name(memory, self.memories), self._looks
        summary_MF = torch.cat([one.summary_MF for one in given.values()], dim=-1)
        first = self.begin(summary_MF).tanh().chunk(len(self.layers) * self._first.carries, dim=-1)
        layers = [tuple(first[i :: len(self.layers)]) for i in range(len(self.layers))]
        seen = {name: _prepared(look, given[name]) for name, look in looks.items()}
        summary_MC = first[0] if self.summarize is None else self.summarize(summary_MF).tanh()
        fed_ME = summary_MF.new_zeros(len(summary_MF), self.embed_width) if self.context == "feeding" else None
        return RecurrentState(layers, fed_ME, seen, summary_MC).repeat(rows)

    def see(self, memories: Mapping[str, Memory], state: RecurrentState) -> RecurrentState:
        """The state with these memories, one a row, in place of those of the same names: what is there to be looked at
        changes from step to step, as a world does."""
        looks = self._looks
        seen = {name: _prepared(looks[name], memory) for name, memory in memories.items()}
        return replace(state, seen={**state.seen, **seen})

    def extend(self, tokens_BT: Tensor, lengths_B: Tensor, state: State) -> tuple[Tensor, RecurrentState]:
        assert isinstance(state, RecurrentState)
        features = []
        for t, tokens_B in enumerate(tokens_BT.unbind(dim=1)):
            features_B1E, after = self.write(tokens_B[:, None], state)
            features.append(features_B1E)
            state = after.where(t < lengths_B, state)
        return self.logits(torch.cat(features, dim=1)), state

    def step(self, tokens_B: Tensor, state: State) -> tuple[Tensor, RecurrentState]:
        assert isinstance(state, RecurrentState)
        features_B1E, after = self.write(tokens_B[:, None], state)
        return self.logits(features_B1E[:, 0]), after

    @property
    def _first(self) -> Cell:
        return cast(Cell, self.layers[0])

    @property
    def _looks(self) -> dict[str, RecurrentLook]:
        """How it looks at each memory; empty where it does not look."""
        looks = {name: getattr(self, named("cross_attention", name), None) for name in self.memories}
        return {name: look for name, look in looks.items() if look is not None}

    def _look(self, q_BTH: Tensor, state: RecurrentState) -> Tensor:
        """What queries see of all memories, side by side."""
        contexts = [look(q_BTH, state.seen[name]) for name, look in self._looks.items()]
        return contexts[0] if len(contexts) == 1 else torch.cat(contexts, dim=-1)

    def write(self, tokens_BT: Tensor, state: RecurrentState) -> tuple[Tensor, RecurrentState]:
        """Features of all steps, and the state after them."""
        x_BTE, looks = self.embed(tokens_BT), self._looks
        if self.context == "feeding":
            features_BTE, queries_BTH, after = self._feed(x_BTE, state)
        elif self.context == "update" and looks:
            features_BTE, queries_BTH, after = self._look_before(x_BTE, state)
        else:
            features_BTE, queries_BTH, after = self._look_after(x_BTE, state)
        for name, look in looks.items():
            look.tell(queries_BTH, state.seen[name])
        return features_BTE, after

    def _look_after(self, x_BTE: Tensor, state: RecurrentState) -> tuple[Tensor, Tensor, RecurrentState]:
        """Features, the queries that looked, and the state after them.

        No step waits for a look: each layer runs over all steps, then all states look at once.
        """
        layers: list[Carried] = []
        states_BTH = x_BTE
        for cell, carried in zip(self.layers, state.layers, strict=True):
            inputs_BTG = cell.input(self.dropout(states_BTH) if layers else x_BTE)
            if self.beside is not None and not layers:
                inputs_BTG = inputs_BTG + self.beside(self._summary(state))[:, None]
            states_BTH, last = unroll(cell, inputs_BTG, carried)
            layers.append(last)
        features_BTE = self._read(states_BTH, self._see(states_BTH, state), x_BTE)
        return features_BTE, states_BTH, replace(state, layers=layers)

    def _look_before(self, x_BTE: Tensor, state: RecurrentState) -> tuple[Tensor, Tensor, RecurrentState]:
        """The state before the step looks, and what it saw goes into the step (Bahdanau et al. 2015, A.1.2)."""
        assert self.beside is not None
        queries, contexts, tops = [], [], []
        for input_BG in self._first.input(x_BTE).unbind(dim=1):
            queries.append(state.top_BH)
            contexts.append(self._look(state.top_BH[:, None], state)[:, 0])
            state = self._advance(input_BG + self.beside(contexts[-1]), state)
            tops.append(state.top_BH)
        features_BTE = self._read(torch.stack(tops, dim=1), torch.stack(contexts, dim=1), x_BTE)
        return features_BTE, torch.stack(queries, dim=1), state

    def _feed(self, x_BTE: Tensor, state: RecurrentState) -> tuple[Tensor, Tensor, RecurrentState]:
        """The state after the step looks, and the output goes into the next step (Luong et al. 2015, 3.3)."""
        assert self.beside is not None
        queries, features = [], []
        for input_BG in self._first.input(x_BTE).unbind(dim=1):
            state = self._advance(input_BG + self.beside(state.fed_BE), state)
            top_B1H = state.top_BH[:, None]
            fed_BE = self._read(top_B1H, self._see(top_B1H, state), x_BTE)[:, 0]
            state = replace(state, fed_BE=fed_BE)
            queries.append(state.top_BH)
            features.append(fed_BE)
        return torch.stack(features, dim=1), torch.stack(queries, dim=1), state

    def _advance(self, input_BG: Tensor, state: RecurrentState) -> RecurrentState:
        layers: list[Carried] = []
        for number, (cell, carried) in enumerate(zip(self.layers, state.layers, strict=True)):
            layers.append(cell(cell.input(self.dropout(layers[-1][0])) if number else input_BG, carried))
        return replace(state, layers=layers)

    def _see(self, states_BTH: Tensor, state: RecurrentState) -> Tensor | None:
        """What states see after their step."""
        if self.context == "none":
            return None
        if state.seen:
            return self._look(states_BTH, state)
        return self._summary(state)[:, None].expand(-1, states_BTH.shape[1], -1)

    def _summary(self, state: RecurrentState) -> Tensor:
        """The memories' summary for each row."""
        summary_MC = state.summary_MC
        return summary_MC.repeat_interleave(state.rows // len(summary_MC), dim=0)

    def _read(self, states_BTH: Tensor, context_BTD: Tensor | None, x_BTE: Tensor) -> Tensor:
        """State, context and, with a context in the update, the last word: what the output layer reads."""
        parts = [states_BTH] if context_BTD is None else [states_BTH, context_BTD]
        if self.context == "update":
            parts.append(x_BTE)
        features: Tensor = self.dropout(self.readout(torch.cat(parts, dim=-1)).tanh())
        return features


def _prepared(look: RecurrentLook, memory: Memory) -> Seen:
    """A memory as one look wants it."""
    mask = None if memory.mask_MS is None else Keys(memory.mask_MS)
    return Seen(look.score.prepare(memory.states_MSD), memory.states_MSD, mask)
