"""XLNet: the streams are those of transformers, no target sees itself, memory is read and not learnt through."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from conftest import random_tokens_BT
from saccade.arch.weights import parameters
from saccade.arch.xlnet import XlnetConfig
from saccade.data.batches import padding_mask
from saccade.data.permute import LONGEST, SHARE, PermutedBatch, permute, spans
from saccade.errors import WrongUse
from saccade.models.xlnet import Order, PermutationModel, Remembered, build_xlnet
from saccade.nn.relative import shifted
from saccade.nn.watch import watch
from saccade.tokens.marks import SPECIALS, Marks
from saccade.train.loss import cross_entropy

MARKS = Marks()
BEGIN, END, PAD = MARKS.begin, MARKS.end, MARKS.pad

VOCABULARY, ROWS, LENGTH, MEMORY = 30, 3, 12, 7


def config_of(**options: Any) -> XlnetConfig:
    sizes = {"layers": 2, "width": 16, "heads": 4, "feedforward": 24, "memory": MEMORY, "dropout": 0.0}
    return XlnetConfig.read(sizes | options, where="tiny")


def build(**options: Any) -> PermutationModel:
    """An untrained model, in eval mode, whose every weight matters."""
    torch.manual_seed(0)
    model = build_xlnet(config_of(**options), VOCABULARY)
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(12 if weight.ndim == 2 else 1).add_(0.2 * torch.randn_like(weight))
    return model.eval()


def batch(rows: int = ROWS, length: int = LENGTH, seed: int = 0) -> PermutedBatch:
    tokens_BT = random_tokens_BT(rows, length, vocabulary=VOCABULARY, seed=seed)
    return permute(tokens_BT, np.random.default_rng(seed), MARKS, starts=np.arange(rows))


def changed(tokens_BT: Tensor, at_B1: Tensor) -> Tensor:
    """Another word at one place of each row."""
    other_B1 = (tokens_BT.gather(1, at_B1) - 3 + 1) % (VOCABULARY - 3) + 3
    return tokens_BT.scatter(1, at_B1, other_B1)


def order_of(given: PermutedBatch) -> Order:
    return Order(given.places_BT, given.targets_BK)


def random_order(length: int = LENGTH, targets: int = 5, seed: int = 0) -> Order:
    """A whole permutation; its last positions are targets."""
    random = np.random.default_rng(seed)
    sequence_BT = torch.from_numpy(np.stack([random.permutation(length) for _ in range(ROWS)]))
    return Order(sequence_BT.argsort(dim=1), sequence_BT[:, -targets:])


def remember(model: PermutationModel, seed: int = 5) -> Remembered:
    before = batch(length=9, seed=seed)
    remembered = model.features(before.tokens_BT, order_of(before)).remembered
    assert remembered is not None
    return remembered


def assert_close(found: Tensor, expected: Tensor, near: float = 1e-5) -> None:
    torch.testing.assert_close(found, expected, atol=near, rtol=near)


# The pieces


@pytest.mark.parametrize(("queries", "keys"), [(1, 1), (1, 4), (5, 5), (4, 9)])
def test_shifted_scores_stand_where_their_keys_do(queries: int, keys: int) -> None:
    scores = torch.randn(2, 3, queries, queries + keys)
    found = shifted(scores, keys)
    assert found.untyped_storage().data_ptr() == scores.untyped_storage().data_ptr(), "nothing is copied"
    for i in range(queries):
        for j in range(keys):
            distance = (keys - queries + i) - j
            assert torch.equal(found[:, :, i, j], scores[:, :, i, keys - distance])


def test_what_does_not_fit_says_so() -> None:
    with pytest.raises(WrongUse, match="width 10 does not divide into 4 heads"):
        XlnetConfig.read({"width": 10}, where="model")
    with pytest.raises(WrongUse, match="even width, not 9"):
        XlnetConfig.read({"width": 9, "heads": 3}, where="model")
    tokens_BT = random_tokens_BT(1, 4, vocabulary=VOCABULARY)
    with pytest.raises(ValueError, match="attention without segments"):
        build(segments=False).encoder(tokens_BT, None, torch.zeros_like(tokens_BT))


# The same weights in transformers


def theirs_of(model: PermutationModel, config: XlnetConfig) -> Any:
    transformers = pytest.importorskip("transformers")
    sizes = {"d_model": config.width, "n_layer": config.layers, "n_head": config.heads, "d_inner": config.feedforward}
    others = {"ff_activation": config.activation, "mem_len": config.memory, "dropout": 0.0}
    theirs = transformers.XLNetLMHeadModel(transformers.XLNetConfig(vocab_size=VOCABULARY, **sizes, **others)).eval()
    encoder, inner = model.encoder, theirs.transformer
    pairs: list[tuple[Tensor, Tensor]] = [
        (inner.word_embedding.weight, encoder.embed.tokens.weight),
        (inner.mask_emb, encoder.unknown),
        (theirs.lm_loss.bias, model.head.bias),
    ]
    for layer, block in zip(inner.layer, encoder.blocks, strict=True):
        theirs_attention, ours = layer.rel_attn, block.self_attention
        key, value = ours.project.weight.chunk(2)
        norms = [(theirs_attention, block.around_self), (layer.ff, block.around_feedforward)]
        linears = [(layer.ff.layer_1, block.feedforward.widen), (layer.ff.layer_2, block.feedforward.narrow)]
        pairs += [
            (theirs_attention.q, ours.query.weight.T),
            (theirs_attention.k, key.T),
            (theirs_attention.v, value.T),
            (theirs_attention.r, ours.place.weight.T),
            (theirs_attention.o, ours.out.weight),
            (theirs_attention.r_w_bias, ours.content_bias),
            (theirs_attention.r_r_bias, ours.place_bias),
        ]
        if config.segments:
            pairs.append((theirs_attention.r_s_bias, ours.segment_bias))
            pairs.append((theirs_attention.seg_embed, torch.stack([ours.same_segment, ours.other_segment])))
        for to, of in [(owner.layer_norm, around.norm) for owner, around in norms] + linears:
            pairs += [(to.weight, of.weight), (to.bias, of.bias)]
    with torch.no_grad():
        for to, of in pairs:
            to.copy_(of.reshape(to.shape))
    return theirs


SHAPES: list[dict[str, Any]] = [
    {},
    {"layers": 3, "width": 24, "heads": 3, "feedforward": 40, "activation": "relu", "memory": 20},
    {"layers": 1, "width": 10, "heads": 1, "feedforward": 7, "segments": False, "memory": 3},
]


@pytest.mark.parametrize("options", SHAPES)
@pytest.mark.parametrize("padded", [False, True])
def test_all_seeing_all_is_that_of_transformers_and_so_is_what_a_watcher_hears(
    options: dict[str, Any], padded: bool
) -> None:
    model = build(**options)
    tokens_BT = random_tokens_BT(ROWS, LENGTH, vocabulary=VOCABULARY, seed=1)
    real_BT = torch.arange(LENGTH) < torch.tensor([[12], [7], [1]] if padded else [[LENGTH]] * ROWS)
    mask_BT = real_BT if padded else None
    segments_BT = (torch.rand(ROWS, LENGTH) < 0.4).long() if options.get("segments", True) else None
    expected = theirs_of(model, config_of(**options)).transformer(
        tokens_BT, attention_mask=real_BT.float(), token_type_ids=segments_BT, output_attentions=True
    )
    with watch(model) as looks:
        watched = model.encoder(tokens_BT, mask_BT, segments_BT).states_MSD
    assert torch.equal(watched, model.encoder(tokens_BT, mask_BT, segments_BT).states_MSD)
    assert_close(watched[real_BT], expected.last_hidden_state[real_BT], 1e-4)
    for look, weights in zip(looks, expected.attentions, strict=True):
        assert_close(look.weights_BNTS.transpose(1, 2)[real_BT], weights.transpose(1, 2)[real_BT], 1e-4)


@pytest.mark.parametrize("options", SHAPES)
@pytest.mark.parametrize("remembering", [False, True])
@pytest.mark.parametrize("kind", ["permutation", "context together", "padded"])
def test_both_streams_are_those_of_transformers(options: dict[str, Any], remembering: bool, kind: str) -> None:
    model = build(**options)
    theirs = theirs_of(model, config_of(**options))
    tokens_BT, order, mask_BT = random_tokens_BT(ROWS, LENGTH, vocabulary=VOCABULARY, seed=2), random_order(), None
    if kind == "context together":
        order = replace(order, places_BT=order.places_BT.clamp(min=LENGTH - 6))
    if kind == "padded":  # the padding stands last in the order; the targets are the last that are real
        mask_BT = torch.arange(LENGTH) < torch.tensor([[12], [9], [10]])
        places_BT = (order.places_BT + LENGTH * ~mask_BT).argsort(dim=1).argsort(dim=1)
        last = mask_BT.sum(dim=1, keepdim=True) - torch.arange(4, 0, -1)
        order = Order(places_BT, places_BT.argsort(dim=1).gather(1, last))
    segments_BT = (torch.rand(ROWS, LENGTH) < 0.4).long() if options.get("segments", True) else None
    before = remember(model) if remembering else None

    ours = model.encoder.two_streams(tokens_BT, order, mask_BT=mask_BT, segments_BT=segments_BT, before=before)
    seen_BTT = order.places_BT[:, None] <= order.places_BT[:, :, None]
    expected = theirs(
        tokens_BT,
        attention_mask=None if mask_BT is None else mask_BT.float(),
        perm_mask=(~seen_BTT | torch.eye(LENGTH, dtype=torch.bool)).float(),
        target_mapping=nn.functional.one_hot(order.targets_BK, LENGTH).float(),
        token_type_ids=segments_BT,
        mems=None if before is None else [states.transpose(0, 1) for states in before.states],
        use_mems=True,
        output_hidden_states=True,
    )
    real_BT = torch.ones(ROWS, LENGTH, dtype=torch.bool) if mask_BT is None else mask_BT
    assert ours.content_BTD is not None
    assert_close(ours.content_BTD[real_BT], expected.hidden_states[-2][real_BT], 1e-4)
    assert_close(ours.query_BKD, expected.hidden_states[-1], 1e-4)
    assert_close(model.head(ours.query_BKD), expected.logits, 1e-4)
    assert ours.remembered is not None
    for found, kept in zip(ours.remembered.states, expected.mems, strict=True):
        where_BM = real_BT if before is None else torch.cat([before.mask_BM, real_BT], dim=1)
        where_BM = where_BM[:, -kept.shape[0] :]
        assert torch.equal(where_BM, ours.remembered.mask_BM)
        assert_close(found[where_BM], kept.transpose(0, 1)[where_BM], 1e-4)


# Who sees whom


@pytest.mark.parametrize("together", [False, True])
def test_no_target_sees_itself_or_what_comes_after_it(together: bool) -> None:
    model = build(layers=3)
    tokens_BT, order = random_tokens_BT(ROWS, LENGTH, vocabulary=VOCABULARY), random_order(targets=6)
    if together:
        order = replace(order, places_BT=order.places_BT.clamp(min=LENGTH - 7))
    before = model(tokens_BT, order)
    for k in range(6):
        after = model(changed(tokens_BT, order.targets_BK[:, k : k + 1]), order)
        # The targets stand in their order: up to and with this one nothing changes, after it all see it.
        assert torch.equal(after[:, : k + 1], before[:, : k + 1])
        assert ((after[:, k + 1 :] - before[:, k + 1 :]).abs().amax(dim=-1) > 1e-4).all()


def test_all_see_the_context_and_the_context_sees_no_target() -> None:
    model, order = build(), random_order()
    order = replace(order, places_BT=order.places_BT.clamp(min=LENGTH - 6))
    context_BT = order.places_BT == LENGTH - 6
    tokens_BT = random_tokens_BT(ROWS, LENGTH, vocabulary=VOCABULARY)
    before = model.encoder.two_streams(tokens_BT, order)
    for position in range(LENGTH):
        after = model.encoder.two_streams(changed(tokens_BT, torch.full((ROWS, 1), position)), order)
        assert before.content_BTD is not None
        moved_BT = (after.content_BTD - before.content_BTD).abs().amax(dim=-1) > 1e-5
        moved_BK = (after.query_BKD - before.query_BKD).abs().amax(dim=-1) > 1e-5
        for row, known in enumerate(context_BT[:, position]):
            assert moved_BT[row][context_BT[row]].eq(known).all()
            assert moved_BK[row].all() or not known


def test_the_first_in_an_order_knows_nothing_and_is_still_a_number() -> None:
    model, order = build(), random_order(targets=LENGTH)
    one, other = (model(random_tokens_BT(ROWS, LENGTH, vocabulary=VOCABULARY, seed=seed), order) for seed in (0, 1))
    assert torch.isfinite(one).all()
    assert torch.equal(one[:, 0], other[:, 0])
    assert not torch.allclose(one[:, 1], other[:, 1])


def test_documents_of_a_row_are_as_if_alone_and_the_one_that_continues_sees_the_memory() -> None:
    model, one, other = build(), batch(length=5), batch(length=7, seed=1)
    places_BT = torch.cat([one.places_BT, other.places_BT], dim=1)
    together = model.features(
        torch.cat([one.tokens_BT, other.tokens_BT], dim=1),
        Order(places_BT, torch.cat([one.targets_BK, 5 + other.targets_BK], dim=1)),
        documents_BT=torch.tensor([0] * 5 + [1] * 7).expand(ROWS, -1),
        before=remember(model),
    )
    continued = model.features(one.tokens_BT, order_of(one), before=remember(model)).query_BKD
    alone = model.features(other.tokens_BT, order_of(other)).query_BKD
    assert_close(together.query_BKD, torch.cat([continued, alone], dim=1))


def test_padding_changes_nothing() -> None:
    model, given_ = build(), batch()
    padded_BT = nn.functional.pad(given_.tokens_BT, (0, 4), value=PAD)
    order = Order(nn.functional.pad(given_.places_BT, (0, 4)), given_.targets_BK)
    mask_BT = padding_mask(padded_BT.numpy(), PAD)
    assert mask_BT is not None
    assert given_.mask_BT is None
    found = model.features(padded_BT, order, mask_BT=mask_BT)
    assert_close(found.query_BKD, model.features(given_.tokens_BT, order_of(given_)).query_BKD)
    memory = model.encoder(padded_BT, mask_BT)
    assert_close(memory.states_MSD[:, :LENGTH], model.encoder(given_.tokens_BT).states_MSD)


def test_leaving_out_the_last_content_changes_nothing() -> None:
    model, given_ = build(layers=3), batch()
    segments_BT = (torch.arange(LENGTH) > 5).long().expand(ROWS, -1)
    options: dict[str, Any] = {"segments_BT": segments_BT, "before": remember(model)}
    full = model.encoder.two_streams(given_.tokens_BT, order_of(given_), **options)
    lean = model.features(given_.tokens_BT, order_of(given_), **options)
    assert lean.content_BTD is None
    assert_close(lean.query_BKD, full.query_BKD)


# Memory


def test_memory_is_read_but_no_gradient_flows_into_it() -> None:
    model, given_ = build(), batch()
    remembered = remember(model)
    assert [tuple(states.shape) for states in remembered.states] == [(ROWS, MEMORY, 16)] * 2
    assert not any(states.requires_grad for states in remembered.states)
    with_memory = model.features(given_.tokens_BT, order_of(given_), before=remembered).query_BKD
    without = model.features(given_.tokens_BT, order_of(given_)).query_BKD
    assert ((with_memory - without).abs().amax(dim=-1) > 1e-4).all()
    # Words that only the segment before has get no gradient, though what became of them was looked at.
    gradient_VD = torch.autograd.grad(with_memory.sum(), model.encoder.embed.tokens.weight)[0]
    read = gradient_VD.ne(0).any(dim=1)
    assert set(read.nonzero().flatten().tolist()) <= set(given_.tokens_BT.flatten().tolist())
    assert read.any()


def test_memory_grows_to_its_length_and_a_model_without_one_has_none() -> None:
    model, remembered = build(), None
    for expected in (4, 7, 7):
        part = batch(length=4)
        remembered = model.features(part.tokens_BT, order_of(part), before=remembered).remembered
        assert remembered is not None
        assert remembered.mask_BM.shape == (ROWS, expected)
    assert build(memory=0).features(part.tokens_BT, order_of(part)).remembered is None


def test_nobody_looks_at_remembered_padding() -> None:
    model, given_, remembered = build(), batch(), remember(build())
    mask_BM = (torch.arange(MEMORY) < 4).expand(ROWS, -1)
    found = []
    for value in (0.0, 9.0):
        states = tuple(states_BMD.masked_fill(~mask_BM[:, :, None], value) for states_BMD in remembered.states)
        before = Remembered(states, mask_BM)
        found.append(model.features(given_.tokens_BT, order_of(given_), before=before).query_BKD)
    assert torch.equal(*found)


# Size and learning


def test_xlnet_large_has_as_many_weights_as_published() -> None:
    config = XlnetConfig(layers=24, width=1024, heads=16, feedforward=4096)
    with torch.device("meta"):
        model = build_xlnet(config, 32_000)
    assert sum(weight.numel() for weight in model.encoder.parameters()) == 360_268_800
    assert sum(weight.numel() for weight in model.parameters()) == 360_268_800 + 32_000  # the output layer's biases
    assert model.head.weight is model.encoder.embed.tokens.weight
    assert parameters(config.weights(32_000)) == 360_268_800
    matrices = sum(weight.numel() for weight in model.encoder.blocks.parameters() if weight.ndim == 2)
    assert matrices == 24 * sum(weight.size for weight in config.block().values() if len(weight.shape) == 2)
    assert model.encoder.flops(10) == 2 * 10 * 24 * (4 * 1024**2 + 2 * 1024 * 4096)


def test_it_learns_what_follows_from_words_on_both_sides() -> None:
    """Rows repeat three random words: any word is known from the others, whichever side they stand."""
    torch.manual_seed(0)
    model = build_xlnet(XlnetConfig(layers=2, width=32, heads=2, feedforward=64, dropout=0.0), 12)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    random = np.random.default_rng(0)
    losses = []
    for _ in range(140):
        tokens_BT = torch.from_numpy(np.tile(random.integers(3, 12, size=(16, 3)), 4))
        given_ = permute(tokens_BT, random, MARKS, starts=np.arange(16))
        real_BK = given_.real_BK
        features = model.features(tokens_BT, order_of(given_)).query_BKD[real_BK]
        loss = cross_entropy(features, model.head, given_.labels_BK[real_BK], 0.0)[0] / real_BK.sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[0] > 2.0
    assert np.mean(losses[-10:]) < 0.5


# Orders and targets


@given(st.integers(1, 4), st.integers(1, 40), st.integers(0, 2**32))
def test_targets_come_last_in_a_permutation_and_are_words(rows: int, length: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    ids = random.integers(len(SPECIALS), 9, size=(rows, length))
    ids[random.random(ids.shape) < 0.2] = random.choice([PAD, BEGIN, END])
    tokens_BT = torch.from_numpy(ids)
    found = permute(tokens_BT, random, MARKS, starts=np.arange(rows))
    assert torch.equal(found.order_BT.sort(dim=1).values, torch.arange(length).expand(rows, -1))
    for row in range(rows):
        real_K = found.real_BK[row]
        assert torch.equal(real_K, found.labels_BK[row] != PAD)
        targets = found.targets_BK[row][real_K]
        assert torch.equal(found.labels_BK[row][real_K], tokens_BT[row][targets])
        assert (tokens_BT[row][targets] >= len(SPECIALS)).all()
        assert (len(targets) > 0) == bool((tokens_BT[row] >= len(SPECIALS)).any())
        last = torch.arange(length - len(targets), length)
        assert torch.equal(found.order_BT[row][targets], last), "last, and listed in their order"
        context = found.order_BT[row] < length - len(targets)
        assert (found.places_BT[row][context] == length - len(targets) - 1).all()
        assert torch.equal(found.places_BT[row][targets], last)


def test_a_sixth_of_the_words_are_targets_wherever_they_stand_and_in_spans() -> None:
    random, words, draws = np.random.default_rng(0), 90, 4000
    chosen = np.zeros((draws, words), dtype=bool)
    for row in chosen:
        row[spans(words, random)] = True
    share = 1 / SHARE
    # The words of a row depend on one another, the rows do not. What is added to each bound is for a row's ends, whose
    # spans are cut.
    counts = chosen.mean(axis=1)
    assert abs(counts.mean() - share) < 4 * counts.std() / draws**0.5 + 0.002
    assert np.abs(chosen.mean(axis=0) - share).max() < 5 * (share * (1 - share) / draws) ** 0.5 + 0.01
    # Of a span of L words L - 1 have a next one: of 15 words in spans of 1 to 5, ten; by chance it were one in six.
    follows = (chosen[:, 1:] & chosen[:, :-1]).sum() / chosen[:, :-1].sum()
    lengths = np.arange(1, LONGEST + 1)
    assert abs(follows - (lengths - 1).sum() / lengths.sum()) < 0.08
    assert follows > 3 * share
