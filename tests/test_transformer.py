"""The Transformer: PyTorch's own with the same weights, blind to the future and to padding, of the published size."""

import pytest
import torch
from torch import Tensor, nn

from conftest import random_sequences, random_tokens_BT, read, small_model
from saccade.arch.encoder_decoder import EncoderDecoderConfig, StackConfig
from saccade.models.encdec import build_embedding, build_encoder_decoder
from saccade.models.transformer import TransformerDecoder, TransformerEncoder
from saccade.nn.block import Block
from saccade.nn.dropout import Dropout
from saccade.nn.masks import Causal, Keys
from saccade.nn.multihead import CrossAttention, SelfAttention

WIDTH, HEADS, HIDDEN, LAYERS, VOCABULARY = 16, 4, 24, 3, 20
SIZES = {"d_model": WIDTH, "nhead": HEADS, "dim_feedforward": HIDDEN, "dropout": 0.0, "batch_first": True}
norms = pytest.mark.parametrize("norm", ["pre", "post"])
activations = pytest.mark.parametrize("activation", ["relu", "gelu"])


# PyTorch's own layers with our weights


def stack_config(norm: str, activation: str) -> StackConfig:
    table = {"layers": LAYERS, "width": WIDTH, "heads": HEADS, "feedforward": HIDDEN, "dropout": 0.0}
    return StackConfig.read(table | {"order": norm, "activation": activation}, where="test")


def shaken(module: nn.Module) -> nn.Module:
    """Every weight moved, so that no bias is zero and no norm the identity."""
    with torch.no_grad():
        for weight in module.parameters():
            weight.add_(0.2 * torch.randn_like(weight))
    return module.eval()


def copy_attention(ours: SelfAttention | CrossAttention, theirs: nn.MultiheadAttention) -> None:
    inward = [ours.project] if isinstance(ours, SelfAttention) else [ours.query, ours.project]
    theirs.in_proj_weight.copy_(torch.cat([linear.weight for linear in inward]))
    theirs.in_proj_bias.copy_(torch.cat([linear.bias for linear in inward]))
    theirs.out_proj.load_state_dict(ours.out.state_dict())


@torch.no_grad()
def copy_block(ours: Block, theirs: nn.TransformerEncoderLayer | nn.TransformerDecoderLayer) -> None:
    copy_attention(ours.self_attention, theirs.self_attn)
    around = [ours.around_self, ours.around_feedforward]
    if isinstance(theirs, nn.TransformerDecoderLayer):
        copy_attention(ours.cross_attention, theirs.multihead_attn)
        around.insert(1, ours.around_cross)
    for number, connection in enumerate(around, 1):
        theirs.get_submodule(f"norm{number}").load_state_dict(connection.norm.state_dict())
    theirs.linear1.load_state_dict(ours.feedforward.widen.state_dict())
    theirs.linear2.load_state_dict(ours.feedforward.narrow.state_dict())


def keys_mask(lengths: list[int]) -> Tensor:
    return torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]


def assert_equal_where(mask_BT: Tensor, one_BTD: Tensor, other_BTD: Tensor) -> None:
    """Equal at the real positions; what stands at padding concerns nobody."""
    torch.testing.assert_close(one_BTD[mask_BT], other_BTD[mask_BT], atol=1e-5, rtol=1e-5)


@norms
@activations
def test_an_encoder_block_is_pytorchs(norm: str, activation: str) -> None:
    config = stack_config(norm, activation)
    ours = shaken(TransformerEncoder(config, build_embedding(config, VOCABULARY))).blocks[0]
    theirs = nn.TransformerEncoderLayer(**SIZES, activation=activation, norm_first=norm == "pre").eval()
    copy_block(ours, theirs)
    x_BSD, real_BS = torch.randn(3, 7, WIDTH), keys_mask([7, 4, 1])
    # PyTorch marks what is hidden, we mark what may be seen.
    assert_equal_where(real_BS, ours(x_BSD, Keys(real_BS)), theirs(x_BSD, src_key_padding_mask=~real_BS))
    torch.testing.assert_close(ours(x_BSD, None), theirs(x_BSD), atol=1e-5, rtol=1e-5)


@norms
@activations
def test_a_decoder_block_is_pytorchs(norm: str, activation: str) -> None:
    config = stack_config(norm, activation)
    head = nn.Linear(WIDTH, VOCABULARY, bias=False)
    ours = shaken(TransformerDecoder(config, build_embedding(config, VOCABULARY), head, {"source": WIDTH})).blocks[0]
    theirs = nn.TransformerDecoderLayer(**SIZES, activation=activation, norm_first=norm == "pre").eval()
    copy_block(ours, theirs)
    x_BTD, memory_BSD = torch.randn(3, 5, WIDTH), torch.randn(3, 7, WIDTH)
    real_BT, real_BS = keys_mask([5, 2, 4]), keys_mask([2, 7, 5])
    keys_values = ours.cross_attention.keys_values(memory_BSD)
    written = ours(x_BTD, Causal() & Keys(real_BT), memories={"source": (keys_values, Keys(real_BS))})
    expected = theirs(
        x_BTD,
        memory_BSD,
        tgt_mask=torch.ones(5, 5, dtype=torch.bool).triu(1),
        tgt_key_padding_mask=~real_BT,
        memory_key_padding_mask=~real_BS,
    )
    assert_equal_where(real_BT, written, expected)


@norms
@activations
def test_the_encoder_is_pytorchs_stack(norm: str, activation: str) -> None:
    config = stack_config(norm, activation)
    ours = shaken(TransformerEncoder(config, build_embedding(config, VOCABULARY)))
    layer = nn.TransformerEncoderLayer(**SIZES, activation=activation, norm_first=norm == "pre")
    final = nn.LayerNorm(WIDTH) if norm == "pre" else None
    theirs = nn.TransformerEncoder(layer, LAYERS, final, enable_nested_tensor=False).eval()
    for mine, their in zip(ours.blocks, theirs.layers, strict=True):
        copy_block(mine, their)
    if final is not None:
        theirs.norm.load_state_dict(ours.norm.state_dict())
    source_MS, real_MS = random_tokens_BT(3, 7), keys_mask([7, 4, 1])
    expected = theirs(ours.embed(source_MS), src_key_padding_mask=~real_MS)
    assert_equal_where(real_MS, ours(source_MS, real_MS).states_MSD, expected)


@norms
@activations
def test_the_decoder_is_pytorchs_stack(norm: str, activation: str) -> None:
    config = stack_config(norm, activation)
    head = nn.Linear(WIDTH, VOCABULARY, bias=False)
    ours = shaken(TransformerDecoder(config, build_embedding(config, VOCABULARY), head, {"source": WIDTH}))
    encoder = shaken(TransformerEncoder(config, build_embedding(config, VOCABULARY)))
    layer = nn.TransformerDecoderLayer(**SIZES, activation=activation, norm_first=norm == "pre")
    final = nn.LayerNorm(WIDTH) if norm == "pre" else None
    theirs = nn.TransformerDecoder(layer, LAYERS, final).eval()
    for mine, their in zip(ours.blocks, theirs.layers, strict=True):
        copy_block(mine, their)
    if final is not None:
        theirs.norm.load_state_dict(ours.norm.state_dict())
    real_MS, target_BT = keys_mask([2, 7, 5]), random_tokens_BT(3, 6, seed=1)
    memory = encoder(random_tokens_BT(3, 7), real_MS)
    features = theirs(
        ours.embed(target_BT),
        memory.states_MSD,
        tgt_mask=torch.ones(6, 6, dtype=torch.bool).triu(1),
        memory_key_padding_mask=~real_MS,
    )
    torch.testing.assert_close(ours(target_BT, memory), features @ head.weight.T, atol=1e-5, rtol=1e-5)


# Who sees whom


@norms
def test_a_later_token_never_changes_an_earlier_logit(norm: str) -> None:
    model = small_model(order=norm)
    source_MS, target_BT = random_tokens_BT(2, 6), random_tokens_BT(2, 7, seed=1)
    before_BTV = model(source_MS, None, target_BT)
    for t in range(1, 7):
        changed_BT = target_BT.clone()
        changed_BT[:, t] = (changed_BT[:, t] - 3 + 1) % 17 + 3
        after_BTV = model(source_MS, None, changed_BT)
        assert torch.equal(after_BTV[:, :t], before_BTV[:, :t])
        assert not torch.allclose(after_BTV[:, t:], before_BTV[:, t:]), "it must change its own and what follows"


@norms
def test_every_source_token_changes_every_logit(norm: str) -> None:
    model = small_model(order=norm)
    source_MS, target_BT = random_tokens_BT(1, 6), random_tokens_BT(1, 4, seed=1)
    before_BTV = model(source_MS, None, target_BT)
    for s in range(6):
        changed_MS = source_MS.clone()
        changed_MS[:, s] = (changed_MS[:, s] - 3 + 1) % 17 + 3
        assert ((model(changed_MS, None, target_BT) - before_BTV).abs().amax(-1) > 1e-5).all()


@norms
def test_padded_equals_unpadded(norm: str) -> None:
    model = small_model(order=norm)
    sources = random_sequences([3, 9, 6, 1])
    targets = random_sequences([5, 2, 7, 4], seed=1)
    target_BT = torch.tensor([target + [0] * (7 - len(target)) for target in targets])
    together_BTV = model.decoder(target_BT, read(model, sources))
    for row, (source, target) in enumerate(zip(sources, targets, strict=True)):
        alone_TV = model.decoder(torch.tensor([target]), read(model, [source]))[0]
        torch.testing.assert_close(together_BTV[row, : len(target)], alone_TV, atol=1e-5, rtol=1e-5)


def test_what_stands_at_padding_changes_nothing() -> None:
    model = small_model()
    source_MS, real_MS, target_BT = random_tokens_BT(2, 8), keys_mask([8, 5]), random_tokens_BT(2, 4, seed=1)
    other_MS = source_MS.clone()
    other_MS[1, 5:] = 0
    assert torch.equal(model(source_MS, real_MS, target_BT), model(other_MS, real_MS, target_BT))


# Its parameters


def test_every_layer_has_weights_of_its_own() -> None:
    config = EncoderDecoderConfig()
    model = build_encoder_decoder(config, 50)
    for blocks in (model.encoder.blocks, model.decoder.blocks):
        for name, weight in blocks[0].named_parameters():
            for other in blocks[1:]:
                assert other.get_parameter(name) is not weight
                if weight.ndim == 2:
                    assert not torch.equal(other.get_parameter(name), weight), f"{name} is a copy"


@pytest.mark.parametrize(("tie", "matrices"), [("all", 1), ("decoder", 2), ("none", 3)])
def test_tied_embeddings_are_one_parameter(tie: str, matrices: int) -> None:
    model = small_model(tie=tie, vocabulary=23)
    source, target, head = (
        model.encoder.embed.tokens.weight,
        model.decoder.embed.tokens.weight,
        model.decoder.head.weight,
    )
    assert (target is head) == (tie != "none")
    assert (source is target) == (tie == "all")
    assert sum(weight.shape == (23, 16) for weight in model.parameters()) == matrices


def test_a_tied_matrix_gathers_the_gradients_of_all_its_uses() -> None:
    model = small_model(tie="all")
    source_MS, target_BT = random_tokens_BT(1, 3), random_tokens_BT(1, 3, seed=4)
    weight = model.decoder.head.weight
    (gradient_VD,) = torch.autograd.grad(model(source_MS, None, target_BT).square().sum(), weight)
    # Even a token that was never read is an output that was scored; one that was read has more than that.
    assert (gradient_VD.abs().sum(-1) > 0).all()
    untied = small_model(tie="none")
    parts = [untied.encoder.embed.tokens.weight, untied.decoder.embed.tokens.weight, untied.decoder.head.weight]
    with torch.no_grad():
        untied.load_state_dict(model.state_dict())
    gradients = torch.autograd.grad(untied(source_MS, None, target_BT).square().sum(), parts)
    torch.testing.assert_close(gradient_VD, sum(gradients), atol=1e-4, rtol=1e-4)


def test_transformer_base_has_the_parameters_of_the_formula() -> None:
    vocabulary, layers, d, f = 37_000, 6, 512, 2048
    table = {"layers": layers, "width": d, "heads": 8, "feedforward": f, "order": "post"}
    config = EncoderDecoderConfig.read({"encoder": table, "decoder": table, "tie": "all"}, where="Transformer base")
    with torch.device("meta"):
        model = build_encoder_decoder(config, vocabulary)
    encoder_layer = (4 * d * d + 4 * d) + (2 * d * f + f + d) + 2 * 2 * d
    decoder_layer = 2 * (4 * d * d + 4 * d) + (2 * d * f + f + d) + 3 * 2 * d
    count = sum(weight.numel() for weight in model.parameters())
    assert count == vocabulary * d + layers * (encoder_layer + decoder_layer) == 63_082_496


@norms
def test_flops_are_two_per_weight_and_token(norm: str) -> None:
    model = small_model(order=norm, vocabulary=23)
    matrices = {name: weight.numel() for name, weight in model.named_parameters() if weight.ndim == 2}
    looked_up = sum(count for name, count in matrices.items() if "embed" in name)
    of_source = sum(
        count
        for name, count in matrices.items()
        if name.startswith("encoder.blocks") or "cross_attention.project" in name
    )
    of_target = sum(matrices.values()) - looked_up - of_source
    assert model.flops(source=7, target=5) == 2 * (7 * of_source + 5 * of_target)


def test_heads_that_do_not_divide_the_width_are_refused_with_both_numbers() -> None:
    with pytest.raises(ValueError, match="width 10 does not divide into 4 heads"):
        SelfAttention(10, 4)


@pytest.mark.parametrize("share", [0.1, 0.5])
def test_dropout_zeroes_its_share_in_training_and_keeps_the_mean(share: float) -> None:
    dropout = Dropout(share)
    ones = torch.ones(333, 301)  # not a multiple of four: draws are shared out in fours
    dropped = dropout(ones)
    zero = dropped == 0
    torch.testing.assert_close(dropped[~zero], torch.full_like(dropped[~zero], 1 / (1 - share)))
    spread = 5 * (share * (1 - share) / ones.numel()) ** 0.5
    assert float(zero.float().mean()) == pytest.approx(share, abs=spread)
    # Neighbours fall together no more often than chance, along both axes.
    for one, other in ((zero[1:], zero[:-1]), (zero[:, 1:], zero[:, :-1])):
        assert float((one & other).float().mean()) == pytest.approx(share**2, abs=2 * spread)
    assert torch.equal(dropout.eval()(ones), ones)


def test_the_two_norm_orders_are_two_functions() -> None:
    source_MS, target_BT = random_tokens_BT(1, 5), random_tokens_BT(1, 4, seed=1)
    one, other = (small_model(order=norm)(source_MS, None, target_BT) for norm in ("pre", "post"))
    assert not torch.allclose(one, other, atol=1e-2)
