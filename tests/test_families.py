"""The ancestors keep the promises of the Transformer: padding, causality, looking, learning; and torch's numbers."""

from typing import cast

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from conftest import ANCESTORS, SEVERAL, ancestor, random_sequences, random_tokens_BT, read, tensors
from saccade.arch.convolutions import ConvolutionsFrontEnd
from saccade.arch.encoder_decoder import EncoderDecoderConfig
from saccade.arch.recurrent import RecurrentEncoderConfig
from saccade.arch.sound import SoundFrontEnd
from saccade.errors import UserError, WrongUse
from saccade.models.encdec import EncoderDecoder, build_embedding, build_encoder_decoder
from saccade.models.rnn import RecurrentEncoder
from saccade.nn.watch import watch

LOOKING = [
    name
    for name, table in ANCESTORS.items()
    if table["decoder"].get("attention") != "none" and name not in SEVERAL and "class token" not in name
]
LENGTHS = [2, 6, 1, 4]


@pytest.fixture(params=ANCESTORS)
def model(request: pytest.FixtureRequest) -> EncoderDecoder:
    return ancestor(request.param)


def real_BS(lengths: list[int]) -> Tensor:
    return torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]


# The encoder is torch's


@pytest.mark.parametrize("cell", ["gru", "lstm"])
@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("bidirectional", [False, True])
def test_with_copied_weights_the_encoder_is_torchs_on_packed_sequences(
    cell: str, layers: int, bidirectional: bool
) -> None:
    config = RecurrentEncoderConfig.read(
        {"cell": cell, "layers": layers, "bidirectional": bidirectional, "width": 8, "embed": 5}, where="test"
    )
    ours = RecurrentEncoder(config, build_embedding(config, 20)).eval()
    kind = nn.GRU if cell == "gru" else nn.LSTM
    part = 4 if bidirectional else 8
    theirs = kind(5, part, num_layers=layers, bidirectional=bidirectional, batch_first=True)
    with torch.no_grad():
        for number, layer in enumerate(ours.layers):
            for mine, suffix in zip(cast(nn.ModuleList, layer), ("", "_reverse"), strict=False):
                for linear, name in ((mine.input, "ih"), (mine.state, "hh")):
                    getattr(theirs, f"weight_{name}_l{number}{suffix}").copy_(linear.weight)
                    getattr(theirs, f"bias_{name}_l{number}{suffix}").copy_(linear.bias)
    tokens_BS, mask_BS = random_tokens_BT(4, 6), real_BS(LENGTHS)
    memory = ours(tokens_BS, mask_BS)
    packed = pack_padded_sequence(ours.embed(tokens_BS), torch.tensor(LENGTHS), True, enforce_sorted=False)
    states, last = theirs(packed)
    expected, _ = pad_packed_sequence(states, batch_first=True)
    torch.testing.assert_close(memory.states_MSD, expected, atol=1e-6, rtol=1e-5)
    finals = (last,) if cell == "gru" else last  # [layers x directions, B, H]; ours: carried parts by layer and side
    ordered = [final[i] for i in range(finals[0].shape[0]) for final in finals]
    torch.testing.assert_close(memory.final, torch.cat(ordered, dim=-1), atol=1e-6, rtol=1e-5)


def test_a_reversing_encoder_reads_each_row_from_its_own_end() -> None:
    table = {"bidirectional": False, "width": 8, "embed": 5}
    forwards = RecurrentEncoderConfig.read(table, where="test")
    ours = RecurrentEncoder(forwards, build_embedding(forwards, 20)).eval()
    reverse = RecurrentEncoder(RecurrentEncoderConfig.read(table | {"reverse": True}, where="test"), ours.embed).eval()
    reverse.load_state_dict(ours.state_dict())
    rows = random_sequences(LENGTHS)
    padded, flipped = (
        torch.tensor([row + [0] * (6 - len(row)) for row in texts]) for texts in (rows, [row[::-1] for row in rows])
    )
    memory, expected = reverse(padded, real_BS(LENGTHS)), ours(flipped, real_BS(LENGTHS))
    torch.testing.assert_close(memory.final, expected.final)
    for row, length in enumerate(LENGTHS):
        torch.testing.assert_close(memory.states_MSD[row, :length], expected.states_MSD[row, :length].flip(0))


# Who sees whom


def test_padded_equals_unpadded(model: EncoderDecoder) -> None:
    sources, targets = random_sequences([3, 9, 6, 1]), random_sequences([5, 2, 7, 4], seed=1)
    target_BT = torch.tensor([target + [0] * (7 - len(target)) for target in targets])
    together_BTV = model.decoder(target_BT, read(model, sources))
    for row, (source, target) in enumerate(zip(sources, targets, strict=True)):
        alone_TV = model.decoder(torch.tensor([target]), read(model, [source]))[0]
        torch.testing.assert_close(together_BTV[row, : len(target)], alone_TV, atol=1e-5, rtol=1e-5)


def test_a_later_token_never_changes_an_earlier_logit(model: EncoderDecoder) -> None:
    memory, target_BT = read(model, random_sequences([6, 6])), random_tokens_BT(2, 7, seed=1)
    before_BTV = model.decoder(target_BT, memory)
    for t in range(1, 7):
        changed_BT = target_BT.clone()
        changed_BT[:, t] = (changed_BT[:, t] - 3 + 1) % 17 + 3
        after_BTV = model.decoder(changed_BT, memory)
        assert torch.equal(after_BTV[:, :t], before_BTV[:, :t])
        assert not torch.allclose(after_BTV[:, t:], before_BTV[:, t:]), "it must change its own and what follows"


def test_every_source_token_changes_the_logits(model: EncoderDecoder) -> None:
    (source,), target_BT = random_sequences([6]), random_tokens_BT(1, 4, seed=1)
    before_BTV = model(*tensors([source], model), target_BT)
    for s in range(6):
        changed = [*source[:s], (source[s] - 3 + 1) % 17 + 3, *source[s + 1 :]]
        assert ((model(*tensors([changed], model), target_BT) - before_BTV).abs().amax(-1) > 1e-7).any()


# Looking


@pytest.mark.parametrize("name", LOOKING)
def test_looks_are_heard_and_change_nothing(name: str) -> None:
    model, target_BT = ancestor(name), random_tokens_BT(2, 5, seed=1)
    memory = read(model, random_sequences([6, 3]))
    before = model.decoder(target_BT, memory)
    with watch(model) as looks:
        watched = model.decoder(target_BT, memory)
    assert torch.equal(watched, before)
    cross = looks.cross
    assert cross.shape[1:2] + cross.shape[3:] == (2, 5, 7)
    torch.testing.assert_close(cross.sum(-1), torch.ones(cross.shape[:-1]))
    assert (cross[:, 1, ..., 4:] == 0).all(), "padding is not looked at"
    assert (cross[:, 0] > 0).all()


@pytest.mark.parametrize("name", LOOKING)
def test_steps_are_the_rows_of_the_teacher_forced_looks(name: str) -> None:
    model, target_BT = ancestor(name), random_tokens_BT(2, 5, seed=1)
    memory = read(model, random_sequences([6, 3]))
    with watch(model) as whole:
        model.decoder(target_BT, memory)
    state = model.decoder.start(memory)
    for t in range(5):
        with watch(model) as looks:
            _, state = model.decoder.step(target_BT[:, t], state)
        torch.testing.assert_close(looks.cross[..., 0, :], whole.cross[..., t, :], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", ["gru additive", "general", "scaled dot, fed", "additive, fed", "dot"])
def test_weights_times_values_is_the_context_that_was_used(name: str) -> None:
    model, target_BT = ancestor(name), random_tokens_BT(2, 5, seed=1)
    used: list[Tensor] = []
    model.decoder.cross_attention.register_forward_hook(lambda module, inputs, context: used.append(context))
    with watch(model) as looks:
        model.decoder(target_BT, read(model, random_sequences([6, 3])))
    (look,) = looks
    torch.testing.assert_close((look.weights_BNTS @ look.values)[:, 0], torch.cat(used, dim=1), atol=1e-5, rtol=1e-5)


def test_a_model_without_attention_has_no_looks() -> None:
    model = ancestor("lstm")
    with watch(model) as looks:
        model(random_tokens_BT(1, 4), None, random_tokens_BT(1, 3))
    assert looks.cross.shape[0] == 0


# Training


def test_every_weight_is_trained(model: EncoderDecoder) -> None:
    """But for the embedding, of which only what was read can be."""
    logits = model(*tensors(random_sequences([6, 2, 5, 4]), model), random_tokens_BT(4, 5, seed=1))
    logits.log_softmax(-1)[..., 5].sum().backward()
    still = [
        n for n, w in model.named_parameters() if w.requires_grad and (w.grad is None or not w.grad.abs().sum() > 0)
    ]
    assert still == []


def test_operations_are_counted(model: EncoderDecoder) -> None:
    """Each weight matrix at least once for a target or a source token, the embeddings not at all."""
    tables = ("embed.tokens.weight", "embed.positions.vectors.weight")
    weights = sum(w.numel() for name, w in model.named_parameters() if w.ndim == 2 and not name.endswith(tables))
    once = {"begin", "summarize"}  # per sentence: not counted
    for name, w in model.named_parameters():
        if w.ndim == 2 and any(part in once for part in name.split(".")):
            weights -= w.numel()
    for name, reader in model.config.readers.items():
        embed = model.encoders[name].embed
        if getattr(reader.front_end, "class_token", False):  # the only position, which is no patch
            weights -= sum(w.numel() for n, w in embed.named_parameters() if w.ndim == 2 and "positions" not in n)
        elif isinstance(reader.front_end, ConvolutionsFrontEnd):  # a field of the last grid was more before
            weights += more_often(embed, {"stages.0": 4, "stages.1.first": 2})
        elif isinstance(reader.front_end, SoundFrontEnd):  # three fields of the mel scale; a pyramid has more positions
            weights += more_often(embed, {"stages.0": 6, "stages.1": 3, "project": 1 << getattr(reader, "pyramid", 0)})
            if getattr(reader, "pyramid", 0):
                weights += more_often(model.encoders[name], {"layers.0": 4, "layers.1": 2})
    assert model.flops(1, 1) == 2 * weights


def more_often(part: nn.Module, times: dict[str, int]) -> int:
    """How many more products there are with the matrices of some parts than with each of them once."""
    return sum(
        (count - 1) * weight.numel()
        for begin, count in times.items()
        for name, weight in part.named_parameters()
        if name.startswith(begin) and weight.ndim == 2
    )


# What does not fit


def test_settings_that_do_not_fit_are_refused() -> None:
    rnn = {"kind": "recurrent", "width": 16, "embed": 12}
    for encoder, decoder, words in (
        (rnn | {"reverse": True}, rnn, "both directions"),
        (rnn | {"width": 15}, rnn, "15 is odd"),
        (rnn, rnn | {"context": "none"}, "no use for it"),
        (rnn, rnn | {"embed": 16}, "12 and 16"),
        (rnn, {"kind": "recurent"}, "recurent"),
    ):
        with pytest.raises(WrongUse, match=words):
            EncoderDecoderConfig.read({"encoder": encoder, "decoder": decoder}, where="model")
    for encoder, decoder, words in (
        (rnn | {"width": 10}, rnn | {"attention": "dot"}, "16 wide.*10 wide"),
        ({"kind": "convolution", "width": 12, "kernel": 4}, rnn, "odd, not 4"),
    ):
        config = EncoderDecoderConfig.read({"encoder": encoder, "decoder": decoder, "tie": "decoder"}, where="model")
        with pytest.raises(UserError, match=words):
            build_encoder_decoder(config, 20)
