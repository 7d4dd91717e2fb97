"""GPT and the later turns of its parts: their formulas, others' implementations, written step by step, packed."""

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from conftest import random_sequences, random_tokens_BT
from saccade import native
from saccade.arch.gpt import GptConfig
from saccade.arch.weights import parameters, stored
from saccade.errors import WrongUse
from saccade.models.answering import language_runtime
from saccade.models.contract import State
from saccade.models.gpt import LanguageModel, build_gpt
from saccade.nn.attention import attention
from saccade.nn.feedforward import GatedFeedForward
from saccade.nn.masks import Band, Causal, Documents, Mask
from saccade.nn.multihead import SelfAttention
from saccade.nn.norms import norms
from saccade.nn.relative import encode_distances
from saccade.nn.relative_bias import RelativeBias
from saccade.nn.rotary import Rotary
from saccade.nn.watch import watch
from saccade.runtime.contract import How
from saccade.runtime.kernels import KernelDecoder, unknown_parts
from saccade.runtime.plain import PlainDecoder
from tiny import CONTEXT, GPTS, gpt_config, tiny_gpt

"""What the kernels know; the others run in plain NumPy."""
PLACELESS = [name for name in GPTS if name in ("no positions", "relative", "later turns") or name.startswith("rotary")]
"""Where a text's logits do not depend on how far from the beginning of its row it stands."""
layouts = pytest.mark.parametrize("layout", ["interleaved", "halves"])


@pytest.fixture(params=GPTS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def model(name: str) -> LanguageModel:
    return tiny_gpt(name)


def assert_close(found: Tensor, expected: Tensor, near: float = 1e-5) -> None:
    torch.testing.assert_close(found, expected, atol=near, rtol=near)


def changed(tokens_BT: Tensor, at: int) -> Tensor:
    """Another token at one place."""
    other_BT = tokens_BT.clone()
    other_BT[:, at] = (other_BT[:, at] - 3 + 1) % 17 + 3
    return other_BT


# Rotary positions


def turned(rotary: Rotary, x_H: Tensor, position: int) -> Tensor:
    result: Tensor = rotary(x_H[None, None, None], position)[0, 0, 0]
    return result


@layouts
def test_a_turned_score_depends_on_the_distance_alone(layout: str) -> None:
    rotary = Rotary(8, 100.0, layout)
    q_H, k_H = torch.randn(8), torch.randn(8)
    scores = {
        (query, key): float(turned(rotary, q_H, query) @ turned(rotary, k_H, key))
        for query in (0, 1, 5, 40)
        for key in (0, 1, 5, 40)
    }
    for (query, key), score in scores.items():
        shifted = float(turned(rotary, q_H, query + 13) @ turned(rotary, k_H, key + 13))
        assert shifted == pytest.approx(score, abs=1e-4)
    assert len({round(score, 3) for score in scores.values()}) == 13, "each distance has a score of its own"


@layouts
def test_a_turn_keeps_the_length_and_the_first_position_is_not_turned(layout: str) -> None:
    rotary, x_BNTH = Rotary(8, layout=layout), torch.randn(2, 3, 6, 8)
    y_BNTH = rotary(x_BNTH)
    assert_close(y_BNTH.norm(dim=-1), x_BNTH.norm(dim=-1))
    assert torch.equal(y_BNTH[:, :, 0], x_BNTH[:, :, 0])
    assert not torch.allclose(y_BNTH[:, :, 1:], x_BNTH[:, :, 1:])


def test_turns_are_products_of_complex_numbers() -> None:
    """(x + iy) e^(i p θ), θ = base^(-2i/H): the formula of the paper, pair by pair."""
    x_TH, base = torch.randn(9, 6), 50.0
    angles_TP = torch.arange(9)[:, None] * base ** (-torch.arange(0, 6, 2) / 6)
    turn_TP = torch.polar(torch.ones_like(angles_TP), angles_TP)
    interleaved = torch.view_as_real(torch.view_as_complex(x_TH.view(9, 3, 2)) * turn_TP).flatten(1)
    assert_close(Rotary(6, base)(x_TH[None, None])[0, 0], interleaved)
    halves = torch.complex(x_TH[:, :3], x_TH[:, 3:]) * turn_TP
    assert_close(Rotary(6, base, "halves")(x_TH[None, None])[0, 0], torch.cat([halves.real, halves.imag], dim=1))


@layouts
def test_rows_may_begin_at_places_of_their_own(layout: str) -> None:
    rotary, x_BNTH = Rotary(8, layout=layout), torch.randn(3, 2, 4, 8)
    together = rotary(x_BNTH, torch.tensor([0, 7, 2]))
    for row, start in enumerate((0, 7, 2)):
        assert_close(together[row : row + 1], rotary(x_BNTH[row : row + 1], start))
    whole = rotary(torch.cat([torch.zeros(3, 2, 7, 8), x_BNTH], dim=2))
    assert_close(whole[1, :, 7:], together[1])


def test_heads_of_odd_width_cannot_be_turned() -> None:
    with pytest.raises(ValueError, match="even width, not 5"):
        Rotary(5)


# Distances


def test_attention_by_distance_is_its_formula_written_out() -> None:
    """((q_i + u)·k_j + (q_i + v)·W R_{i-j}) / √H, place by place."""
    bias, q_BNTH = RelativeBias(8, 2), torch.randn(1, 2, 3, 4)
    for weight in (bias.content_bias, bias.place_bias):
        nn.init.normal_(weight)
    start, keys = 2, 5
    turned_BNTH, found_BNTS = bias(q_BNTH, keys, start)
    for head, query, key in itertools.product(range(2), range(3), range(keys)):
        if key > start + query:
            continue
        mine = slice(4 * head, 4 * head + 4)
        r_D = bias.place(encode_distances(1, start + query - key, 8)[0])
        q_H = q_BNTH[0, head, query]
        assert_close(found_BNTS[0, head, query, key], (q_H + bias.place_bias[mine]) @ r_D[mine] / 2)
        assert_close(turned_BNTH[0, head, query], q_H + bias.content_bias[mine])


# Bands


def written_out(queries: int, keys: int, width: int, starts: list[int]) -> Tensor:
    """[B, 1, T, S], place by place: a key is seen at most `width` - 1 places back, and never ahead."""
    return torch.tensor(
        [[[0 <= start + query - key < width for key in range(keys)] for query in range(queries)] for start in starts]
    )[:, None]


@pytest.mark.parametrize("width", [1, 2, 3, 9, 50])
def test_a_band_is_what_it_says(width: int) -> None:
    starts = [0, 3, 7]
    offsets_B = torch.tensor(starts)
    rows = (Causal(offsets_B) & Band(width, offsets_B)).allowed(4, 12)
    assert torch.equal(rows, written_out(4, 12, width, starts))
    one = (Causal() & Band(width)).allowed(6, 6)
    assert torch.equal(one.expand(1, 1, 6, 6), written_out(6, 6, width, [0]))


class Written(Mask):
    """A mask that is a table."""

    def __init__(self, allowed: Tensor) -> None:
        self.table = allowed

    def allowed(self, queries: int, keys: int) -> Tensor:
        return self.table


@pytest.mark.parametrize("width", [1, 3, 6, 7, 8, 50])
def test_banded_attention_is_the_oracle_with_the_band_written_out(width: int) -> None:
    banded, x_BTD = SelfAttention(16, 4, window=width), torch.randn(2, 7, 16)
    q, k, v = (part.view(2, 7, 4, 4).transpose(1, 2) for part in banded.project(x_BTD).chunk(3, dim=-1))
    context, _ = attention(q, k, v, mask=Written(written_out(7, 7, width, [0])))
    assert_close(banded(x_BTD, Causal()), banded.out(context.transpose(1, 2).flatten(2)))


def test_looks_stay_within_the_band() -> None:
    model = tiny_gpt("windows")
    with watch(model) as looks:
        model(random_tokens_BT(2, 9))
    dense, banded = looks.decoder[0], looks.decoder[1]
    assert torch.equal(banded > 0, written_out(9, 9, 3, [0]).expand_as(banded))
    assert torch.equal(dense > 0, written_out(9, 9, 9, [0]).expand_as(dense))
    assert_close(banded.sum(-1), torch.ones(2, 4, 9))


def test_layers_take_their_windows_in_turn() -> None:
    windows = [block.self_attention.window for block in tiny_gpt(windows=(0, 3, 5), layers=7).decoder.blocks]
    assert windows == [None, 3, 5, None, 3, 5, None]


def test_a_window_of_one_sees_only_itself() -> None:
    """Every token is then on its own, at its place."""
    model, tokens_BT = tiny_gpt("a window of one"), random_tokens_BT(2, 8)
    before_BTV = model(tokens_BT)
    for t in range(8):
        after_BTV = model(changed(tokens_BT, t))
        others = [i for i in range(8) if i != t]
        assert torch.equal(after_BTV[:, others], before_BTV[:, others])
        assert not torch.allclose(after_BTV[:, t], before_BTV[:, t])


def test_banded_layers_one_over_the_other_look_further() -> None:
    model, tokens_BT = tiny_gpt(windows=(3,), layers=2), random_tokens_BT(1, 12)
    before_BTV = model(tokens_BT)
    after_BTV = model(changed(tokens_BT, 2))
    moved = (after_BTV - before_BTV).abs().amax(-1)[0] > 0
    assert moved.tolist() == [2 <= t <= 2 + 2 * 2 for t in range(12)], "two places back in each of two layers"


# Norms, feed-forward, heads


def test_rms_norm_is_its_formula_and_leaves_the_mean_alone() -> None:
    norm, x = norms("rms", 1e-5)(6), 3 * torch.randn(5, 6) + 2
    nn.init.normal_(norm.weight)
    assert_close(norm(x), x / (x.square().mean(-1, keepdim=True) + 1e-5).sqrt() * norm.weight)
    assert [name for name, _ in norm.named_parameters()] == ["weight"]


def test_layer_norm_is_its_formula() -> None:
    norm, x = norms("layer", 1e-5)(6), 3 * torch.randn(5, 6) + 2
    nn.init.normal_(norm.weight)
    nn.init.normal_(norm.bias)
    centred = x - x.mean(-1, keepdim=True)
    assert_close(norm(x), centred / (centred.square().mean(-1, keepdim=True) + 1e-5).sqrt() * norm.weight + norm.bias)


def test_a_gate_lets_a_value_through() -> None:
    gated, x = GatedFeedForward(6, 10, "silu"), torch.randn(4, 6)
    gate_HD, value_HD = gated.widen.weight.chunk(2)
    gate_H, value_H = gated.widen.bias.chunk(2)
    gate = x @ gate_HD.T + gate_H
    passed = gate * torch.sigmoid(gate) * (x @ value_HD.T + value_H)
    assert_close(gated(x), passed @ gated.narrow.weight.T + gated.narrow.bias)


@pytest.mark.parametrize("key_heads", [1, 2, 4])
def test_shared_key_heads_are_full_heads_with_repeated_weights(key_heads: int) -> None:
    shared, full = SelfAttention(16, 4, key_heads=key_heads, rotary=Rotary(4)), SelfAttention(16, 4, rotary=Rotary(4))
    times = 4 // key_heads

    def repeated(weight: Tensor) -> Tensor:
        queries, keys, values = weight.split(shared.sizes)
        again = [
            part.unflatten(0, (key_heads, 4)).repeat_interleave(times, dim=0).flatten(0, 1) for part in (keys, values)
        ]
        return torch.cat([queries, *again])

    with torch.no_grad():
        full.project.weight.copy_(repeated(shared.project.weight))
        full.project.bias.copy_(repeated(shared.project.bias))
        full.out.load_state_dict(shared.out.state_dict())
    x_BTD = torch.randn(2, 7, 16)
    assert_close(shared(x_BTD, Causal()), full(x_BTD, Causal()))
    assert shared.project.out_features == 16 + 2 * 4 * key_heads


@pytest.mark.parametrize("key_heads", [1, 2])
def test_a_cache_of_shared_heads_is_smaller(key_heads: int) -> None:
    sizes = []
    for model in (tiny_gpt(key_heads=key_heads), tiny_gpt()):
        _, state = model.decoder.extend(random_tokens_BT(2, 8), torch.tensor([8, 8]), model.decoder.start(None, 2))
        sizes.append(state.nbytes)
    assert sizes[0] * 4 == sizes[1] * key_heads


# Others' implementations with the same weights


def test_gpt_2_is_that_of_transformers() -> None:
    transformers = pytest.importorskip("transformers")
    ours = tiny_gpt(vocabulary=50)
    theirs = transformers.GPT2LMHeadModel(
        transformers.GPT2Config(
            vocab_size=50,
            n_positions=CONTEXT,
            n_embd=16,
            n_layer=3,
            n_head=4,
            n_inner=24,
            activation_function="gelu",
            attn_implementation="eager",
        )
    ).eval()
    stack = theirs.transformer
    pairs: list[tuple[Tensor, Tensor]] = [
        (stack.wte.weight, ours.decoder.embed.tokens.weight),
        (stack.wpe.weight, ours.decoder.embed.positions.vectors.weight),
    ]
    norms = [(stack.ln_f, ours.decoder.norm)]
    for their, mine in zip(stack.h, ours.decoder.blocks, strict=True):
        linears = [
            (their.attn.c_attn, mine.self_attention.project),
            (their.attn.c_proj, mine.self_attention.out),
            (their.mlp.c_fc, mine.feedforward.widen),
            (their.mlp.c_proj, mine.feedforward.narrow),
        ]
        # Their matrices stand the other way round.
        pairs += [pair for a, b in linears for pair in ((a.weight, b.weight.T), (a.bias, b.bias))]
        norms += [(their.ln_1, mine.around_self.norm), (their.ln_2, mine.around_feedforward.norm)]
    pairs += [pair for a, b in norms for pair in ((a.weight, b.weight), (a.bias, b.bias))]
    assert_same_logits(theirs, ours, pairs)


@pytest.mark.parametrize("key_heads", [1, 2, 4])
@pytest.mark.parametrize("tie", [False, True])
def test_the_later_turns_are_the_llama_of_transformers(key_heads: int, tie: bool) -> None:
    transformers = pytest.importorskip("transformers")
    rotary = {"kind": "rotary", "layout": "halves", "base": 10_000.0}
    ours = tiny_gpt("later turns", vocabulary=50, positions=rotary, key_heads=key_heads, windows=(0,), tie=tie)
    theirs = transformers.LlamaForCausalLM(
        transformers.LlamaConfig(
            vocab_size=50,
            hidden_size=16,
            intermediate_size=24,
            num_hidden_layers=3,
            num_attention_heads=4,
            num_key_value_heads=key_heads,
            max_position_embeddings=CONTEXT,
            rms_norm_eps=1e-5,
            tie_word_embeddings=tie,
            attn_implementation="eager",
        )
    ).eval()
    pairs: list[tuple[Tensor, Tensor]] = [
        (theirs.model.embed_tokens.weight, ours.decoder.embed.tokens.weight),
        (theirs.model.norm.weight, ours.decoder.norm.weight),
        (theirs.lm_head.weight, ours.decoder.head.weight),
    ]
    for their, mine in zip(theirs.model.layers, ours.decoder.blocks, strict=True):
        attend, feed = their.self_attn, their.mlp
        projections = [attend.q_proj.weight, attend.k_proj.weight, attend.v_proj.weight]
        pairs += zip(projections, mine.self_attention.project.weight.split(mine.self_attention.sizes), strict=True)
        pairs += zip([feed.gate_proj.weight, feed.up_proj.weight], mine.feedforward.widen.weight.chunk(2), strict=True)
        pairs += [
            (attend.o_proj.weight, mine.self_attention.out.weight),
            (feed.down_proj.weight, mine.feedforward.narrow.weight),
            (their.input_layernorm.weight, mine.around_self.norm.weight),
            (their.post_attention_layernorm.weight, mine.around_feedforward.norm.weight),
        ]
    assert_same_logits(theirs, ours, pairs)


@torch.no_grad()
def assert_same_logits(theirs: Any, ours: LanguageModel, pairs: list[tuple[Tensor, Tensor]]) -> None:
    for their, mine in pairs:
        their.copy_(mine)
    copied = {their.data_ptr() for their, _ in pairs}
    assert copied == {weight.data_ptr() for weight in theirs.parameters()}, "every weight of theirs is one of ours"
    tokens_BT = random_tokens_BT(3, CONTEXT, vocabulary=50)
    found_BTV = ours(tokens_BT)
    assert found_BTV.std() > 0.5, "logits that differ, so that the equality says something"
    assert_close(theirs(tokens_BT).logits, found_BTV, near=1e-4)


@pytest.mark.parametrize(
    ("layers", "width", "heads", "published"),
    [(12, 768, 12, 124_439_808), (24, 1024, 16, 354_823_168), (48, 1600, 25, 1_557_611_200)],
)
def test_gpt_2_has_the_weights_of_the_published_models(layers: int, width: int, heads: int, published: int) -> None:
    config = GptConfig(layers=layers, width=width, heads=heads, feedforward=4 * width, context=1024)
    with torch.device("meta"):
        model = build_gpt(config, 50257)
    assert sum(weight.numel() for weight in model.parameters()) == published


# Who sees whom


def test_a_later_token_never_changes_an_earlier_logit(model: LanguageModel) -> None:
    tokens_BT = random_tokens_BT(2, 8)
    before_BTV = model(tokens_BT)
    for t in range(1, 8):
        after_BTV = model(changed(tokens_BT, t))
        assert torch.equal(after_BTV[:, :t], before_BTV[:, :t])
        assert not torch.allclose(after_BTV[:, t], before_BTV[:, t]), "it must change its own"


@pytest.mark.parametrize("name", [name for name in GPTS if name != "a window of one"])
def test_an_earlier_token_changes_every_later_logit(name: str) -> None:
    model, tokens_BT = tiny_gpt(name), random_tokens_BT(1, 8)
    before_BTV = model(tokens_BT)
    for t in range(8):
        moved_T = (model(changed(tokens_BT, t)) - before_BTV).abs().amax(-1)[0]
        assert (moved_T[t:] > 0).all(), "the first layer looks all the way back"


def test_documents_see_themselves_only() -> None:
    numbers_BT = torch.tensor([[0, 0, 1, 1, 1, 2]])
    allowed = Documents(numbers_BT).allowed(6, 6)[0, 0]
    for query in range(6):
        for key in range(6):
            assert allowed[query, key] == (numbers_BT[0, query] == numbers_BT[0, key])


def test_a_document_never_changes_its_neighbour(model: LanguageModel) -> None:
    tokens_BT, documents_BT = random_tokens_BT(1, 12), torch.tensor([[0] * 4 + [1] * 5 + [2] * 3])
    before_BTV = model(tokens_BT, documents_BT)
    for t in range(12):
        moved_T = (model(changed(tokens_BT, t), documents_BT) - before_BTV).abs().amax(-1)[0] > 0
        own_T = documents_BT[0] == documents_BT[0, t]
        assert moved_T[t]
        assert not moved_T[~own_T].any()


@pytest.mark.parametrize("name", PLACELESS)
def test_documents_packed_into_a_row_are_each_alone(name: str) -> None:
    model, texts = tiny_gpt(name), random_sequences([4, 7, 1, 5])
    row = [token for text in texts for token in text]
    documents = [number for number, text in enumerate(texts) for _ in text]
    together_TV = model(torch.tensor([row, row]), torch.tensor([documents, documents]))[1]
    for number, text in enumerate(texts):
        mine = [place for place, of in enumerate(documents) if of == number]
        assert_close(together_TV[mine], model(torch.tensor([text]))[0])


def test_padding_at_the_end_changes_nothing(model: LanguageModel) -> None:
    texts = random_sequences([3, 9, 6])
    padded_BT = torch.tensor([text + [0] * (9 - len(text)) for text in texts])
    for row, text in zip(model(padded_BT), texts, strict=True):
        assert_close(row[: len(text)], model(torch.tensor([text]))[0])


# Written step by step


def alone(model: LanguageModel, text: list[int]) -> Tensor:
    logits_BTV: Tensor = model(torch.tensor([text]))
    return logits_BTV[0]


def extend(decoder: Any, texts: list[list[int]], state: Any) -> tuple[Any, Any]:
    """Texts of any lengths, padded with a token that would be noticed; by PyTorch or by a runtime."""
    longest = max(len(text) for text in texts)
    tokens_BT = torch.tensor([text + [7] * (longest - len(text)) for text in texts])
    lengths_B = torch.tensor([len(text) for text in texts])
    if not isinstance(decoder, nn.Module):
        return decoder.extend(tokens_BT.numpy(), lengths_B.numpy(), state, every=True)
    return decoder.extend(tokens_BT, lengths_B, state)


def assert_goes_on(model: LanguageModel, state: State, texts: list[list[int]], steps: int = 4) -> None:
    more_BT = random_tokens_BT(len(texts), steps, seed=99)
    assert state.rows == len(texts)
    expected = [alone(model, text + more)[-steps:] for text, more in zip(texts, more_BT.tolist(), strict=True)]
    for step in range(steps):
        logits_BV, state = model.decoder.step(more_BT[:, step], state)
        assert_close(logits_BV, torch.stack([logits_TV[step] for logits_TV in expected]))


@pytest.mark.parametrize("pieces", [[1] * 12, [12], [4, 8], [1, 5, 1, 5], [7, 1, 1, 1, 1, 1]], ids=str)
def test_written_in_any_pieces_the_logits_are_those_of_one_pass(model: LanguageModel, pieces: list[int]) -> None:
    tokens_BT = random_tokens_BT(3, 12)
    expected_BTV, state, at = model(tokens_BT), model.decoder.start(None, 3), 0
    for piece in pieces:
        if piece == 1:
            logits_BV, state = model.decoder.step(tokens_BT[:, at], state)
            assert_close(logits_BV, expected_BTV[:, at])
        else:
            logits_BTV, state = model.decoder.extend(tokens_BT[:, at : at + piece], torch.full((3,), piece), state)
            assert_close(logits_BTV, expected_BTV[:, at : at + piece])
        at += piece


def test_prefixes_of_different_lengths_are_each_alone(model: LanguageModel) -> None:
    texts, more = random_sequences([2, 9, 1, 5]), random_sequences([4, 1, 6, 2], seed=1)
    logits_BTV, state = extend(model.decoder, texts, model.decoder.start(None, 4))
    for row, text in enumerate(texts):
        assert_close(logits_BTV[row, : len(text)], alone(model, text))
    logits_BTV, state = extend(model.decoder, more, state)
    whole = [text + rest for text, rest in zip(texts, more, strict=True)]
    for row, (text, rest) in enumerate(zip(texts, more, strict=True)):
        assert_close(logits_BTV[row, : len(rest)], alone(model, whole[row])[len(text) :])
    assert_goes_on(model, state, whole)


def test_states_are_reordered_repeated_and_joined(model: LanguageModel) -> None:
    texts, others = random_sequences([2, 6, 4]), random_sequences([5, 3], seed=1)
    rows = [2, 0, 0]
    _, state = extend(model.decoder, texts, model.decoder.start(None, 3))
    assert_goes_on(model, state.reorder(torch.tensor(rows)), [texts[row] for row in rows])
    _, state = extend(model.decoder, texts, model.decoder.start(None, 3))
    assert_goes_on(model, state.repeat(2), [text for text in texts for _ in range(2)])
    _, state = extend(model.decoder, texts, model.decoder.start(None, 3))
    _, other = extend(model.decoder, others, model.decoder.start(None, 2))
    assert_goes_on(model, state.join(other), texts + others)


# By the runtimes


@pytest.fixture
def _no_gradients() -> Iterator[None]:
    with torch.inference_mode():
        yield


def furthest(found: Any, expected: Tensor) -> float:
    return float((torch.as_tensor(found) - expected).norm() / expected.norm())


@pytest.mark.usefixtures("_no_gradients")
@pytest.mark.parametrize(("how", "near"), [("exact", 1e-5), ("int16", 5e-3), ("int8", 0.1)])
def test_a_runtime_writes_nearly_the_same_logits(name: str, how: How, near: float) -> None:
    if how != "exact" and native.kernels() is None:
        pytest.skip(f"no C kernels: {native.why_not()}")
    model = tiny_gpt(name, width=32)
    runtime = language_runtime(model, how)
    fast = runtime.decoder
    packed = how != "exact" and not unknown_parts(model.config)
    assert isinstance(fast, KernelDecoder if packed else PlainDecoder)
    assert runtime.choice.how == (how if packed else "exact")
    texts = random_sequences([2, 9, 1, 5])
    (expected_BTV, state), (found_BTV, fast_state) = (
        extend(decoder, texts, decoder.start(None, 4)) for decoder in (model.decoder, fast)
    )
    for row, text in enumerate(texts):
        assert furthest(found_BTV[row, : len(text)], expected_BTV[row, : len(text)]) < near
    for rows in ([0, 1, 2, 3], [3, 1], [1, 1, 0]):
        state, fast_state = state.reorder(torch.tensor(rows)), fast_state.reorder(np.array(rows))
        for step in range(4):
            next_B = random_tokens_BT(len(rows), 1, seed=step)[:, 0]
            expected_BV, state = model.decoder.step(next_B, state)
            found_BV, fast_state = fast.step(next_B.numpy(), fast_state)
            assert furthest(found_BV, expected_BV) < near


@pytest.mark.usefixtures("_no_gradients")
def test_whole_texts_have_the_models_own_logits(model: LanguageModel) -> None:
    """Scores of texts and looks are exact, whatever was asked for."""
    tokens_BT = random_tokens_BT(3, CONTEXT)
    for how in (None, "exact"):
        assert_close(torch.from_numpy(language_runtime(model, how).logits(tokens_BT.numpy())), model(tokens_BT), 1e-4)


# Training


def test_every_weight_is_trained(model: LanguageModel) -> None:
    loss = F.cross_entropy(model(random_tokens_BT(4, CONTEXT)).flatten(0, 1), random_tokens_BT(4, CONTEXT).flatten())
    loss.backward()
    still = [
        name for name, weight in model.named_parameters() if weight.grad is None or not weight.grad.abs().sum() > 0
    ]
    assert still == []


def test_operations_are_two_per_weight_and_token(model: LanguageModel) -> None:
    tables = {id(model.decoder.embed.tokens.weight), id(model.decoder.head.weight)}
    matrices = sum(
        weight.numel()
        for name, weight in model.named_parameters()
        if weight.ndim == 2 and id(weight) not in tables and "positions" not in name and ".relative." not in name
    )
    assert model.flops(7) == 2 * 7 * (matrices + 20 * 16)


def test_fresh_models_know_nothing(name: str) -> None:
    """Before training every token is about as likely as any other, whatever the parts."""
    torch.manual_seed(0)
    model = build_gpt(gpt_config(name, width=64, feedforward=128, layers=6), 100).eval()
    tokens_BT = random_tokens_BT(4, CONTEXT, vocabulary=100)
    loss = F.cross_entropy(model(tokens_BT[:, :-1]).flatten(0, 1), tokens_BT[:, 1:].flatten())
    assert loss.item() == pytest.approx(math.log(100), abs=0.15)


@pytest.mark.parametrize("tie", [True, False])
def test_tied_is_one_matrix(tie: bool) -> None:
    decoder = tiny_gpt(tie=tie).decoder
    assert (decoder.head.weight is decoder.embed.tokens.weight) == tie


# Its record


def test_a_config_lists_the_weights_that_the_model_has(name: str) -> None:
    config = gpt_config(name)
    model = build_gpt(config, 20)
    assert parameters(config.weights(20)) == sum(weight.numel() for weight in model.parameters())
    assert stored(config.weights(20)) == {name: tuple(weight.shape) for name, weight in model.named_parameters()}


def test_a_table_makes_the_same_config(name: str) -> None:
    config = gpt_config(name)
    assert GptConfig.read(config.table(), where="table") == config


def test_learned_positions_are_as_many_as_the_context() -> None:
    assert GptConfig.read({"context": 77}, where="test").positions.length == 77


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"width": 18}, "width 18 does not divide into 4 heads"),
        ({"key_heads": 3}, "4 heads cannot share 3"),
        ({"key_heads": 8}, "4 heads cannot share 8"),
        ({"key_heads": 0}, "key_heads"),
        ({"width": 12, "positions": {"kind": "rotary"}}, "even width, not 3"),
        ({"width": 9, "heads": 3, "positions": {"kind": "sinusoidal"}}, "even width, not 9"),
        ({"context": 30, "positions": {"kind": "learned", "length": 20}}, "context of 30 .* not 20"),
        ({"windows": (0, -3)}, "not -3"),
        ({"windows": ()}, "windows"),
        ({"positions": {"kind": "rotray"}}, "rotray"),
        ({"norm": "batch"}, "norm"),
        ({"contxt": 30}, "did you mean context"),
    ],
    ids=str,
)
def test_settings_that_do_not_fit_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(WrongUse, match=words):
        gpt_config("gpt-2", **options)
