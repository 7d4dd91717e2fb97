"""Watching: what is heard is what the model did, listening changes nothing, and nothing stays behind."""

import contextlib
import threading

import pytest
import torch
from torch import Tensor, nn

from conftest import random_sequences, random_tokens_BT, read, small_model
from saccade.models.encdec import EncoderDecoder
from saccade.nn.watch import TensorsHeard, watch

LAYERS, HEADS = 3, 4
SOURCES, TARGET = [6, 3], 5


@pytest.fixture(params=["pre", "post"])
def model(request: pytest.FixtureRequest) -> EncoderDecoder:
    return small_model(layers=LAYERS, heads=HEADS, order=request.param)


def run(model: EncoderDecoder) -> Tensor:
    logits_BTV: Tensor = model.decoder(random_tokens_BT(2, TARGET, seed=1), read(model, random_sequences(SOURCES)))
    return logits_BTV


def listen(model: EncoderDecoder) -> TensorsHeard:
    with watch(model) as looks:
        run(model)
    return looks


def test_watched_equals_unwatched_bit_for_bit(model: EncoderDecoder) -> None:
    before = run(model)
    with watch(model):
        watched = run(model)
    assert torch.equal(watched, before)
    assert torch.equal(run(model), before)


def test_watched_training_has_the_same_gradients_bit_for_bit(model: EncoderDecoder) -> None:
    unwatched = torch.autograd.grad(run(model).square().sum(), list(model.parameters()))
    with watch(model):
        watched = torch.autograd.grad(run(model).square().sum(), list(model.parameters()))
    assert all(torch.equal(one, other) for one, other in zip(watched, unwatched, strict=True))


def test_watched_dropout_draws_the_same_numbers() -> None:
    model = small_model(dropout=0.3).train()
    torch.manual_seed(5)
    unwatched = run(model)
    torch.manual_seed(5)
    with watch(model):
        assert torch.equal(run(model), unwatched)


def test_names_label_every_layer_and_all_heads_are_heard(model: EncoderDecoder) -> None:
    looks = listen(model)
    names = [f"encoder.blocks.{i}.self_attention" for i in range(LAYERS)]
    for i in range(LAYERS):
        names += [f"decoder.blocks.{i}.self_attention", f"decoder.blocks.{i}.cross_attention"]
    assert [look.name for look in looks] == names
    assert len(looks) == 3 * LAYERS
    assert [look.kind for look in looks] == ["encoder"] * LAYERS + ["decoder", "cross"] * LAYERS
    source = max(SOURCES) + 1  # the end mark
    assert looks.encoder.shape == (LAYERS, 2, HEADS, source, source)
    assert looks.decoder.shape == (LAYERS, 2, HEADS, TARGET, TARGET)
    assert looks.cross.shape == (LAYERS, 2, HEADS, TARGET, source)


def test_heads_are_not_averaged(model: EncoderDecoder) -> None:
    for look in listen(model):
        for head in range(1, HEADS):
            assert not torch.allclose(look.weights_BNTS[:, head], look.weights_BNTS[:, 0], atol=1e-3)


def test_weights_times_values_is_the_context_the_layer_used(model: EncoderDecoder) -> None:
    contexts: dict[str, Tensor] = {}

    def remember(name: str) -> nn.Module:
        def hook(module: nn.Module, inputs: tuple[Tensor]) -> None:
            contexts[name] = inputs[0]

        return hook

    for name, module in model.named_modules():
        if name.endswith("_attention.out"):
            module.register_forward_pre_hook(remember(name.removesuffix(".out")))
    looks = listen(model)
    assert {look.name for look in looks} == set(contexts)
    for look in looks:
        context_BTD = (look.weights_BNTS @ look.values).transpose(1, 2).flatten(2)
        torch.testing.assert_close(context_BTD, contexts[look.name], atol=1e-5, rtol=1e-5)


def test_weights_are_the_softmax_of_the_queries_and_keys_that_were_heard(model: EncoderDecoder) -> None:
    # Cross-attention of the row that is not padded: no mask, so the formula is all there is to it.
    for look in listen(model):
        if look.kind == "cross":
            scores = look.queries[0] @ look.keys[0].transpose(-2, -1) / look.queries.shape[-1] ** 0.5
            torch.testing.assert_close(look.weights_BNTS[0], scores.softmax(-1), atol=1e-5, rtol=1e-5)


def test_masks_show_in_what_is_heard(model: EncoderDecoder) -> None:
    looks = listen(model)
    future_TT = torch.ones(TARGET, TARGET, dtype=torch.bool).triu(1)
    assert (looks.decoder[..., future_TT] == 0).all()
    assert (looks.decoder[..., ~future_TT] > 0).all()
    padding = SOURCES[1] + 1
    for weights in (looks.encoder, looks.cross):
        assert (weights[:, 1, ..., padding:] == 0).all()
        assert (weights[:, 1, ..., :padding] > 0).all()
        assert (weights[:, 0] > 0).all()
    for look in looks:
        torch.testing.assert_close(look.weights_BNTS.sum(-1), torch.ones(look.weights_BNTS.shape[:-1]))


def test_steps_are_heard_too_and_are_the_rows_of_the_teacher_forced_looks(model: EncoderDecoder) -> None:
    whole = listen(model)
    target_BT = random_tokens_BT(2, TARGET, seed=1)
    state = model.decoder.start(read(model, random_sequences(SOURCES)))
    for t in range(TARGET):
        with watch(model) as looks:
            _, state = model.decoder.step(target_BT[:, t], state)
        torch.testing.assert_close(looks.cross[..., 0, :], whole.cross[..., t, :], atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(looks.decoder[..., 0, :], whole.decoder[..., t, : t + 1], atol=1e-5, rtol=1e-5)


def test_nothing_is_left_on_the_modules(model: EncoderDecoder) -> None:
    def everything() -> list[tuple[str, list[str], list[str]]]:
        hooks = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks")
        return [
            (name, sorted(vars(module)), [hook for hook in hooks if vars(module).get(hook)])
            for name, module in model.named_modules()
        ]

    before, buffers = everything(), sorted(name for name, _ in model.named_buffers())
    with watch(model):
        run(model)
        assert everything() == before, "nor while watching"
    assert everything() == before
    assert sorted(name for name, _ in model.named_buffers()) == buffers


def test_what_is_heard_holds_no_graph(model: EncoderDecoder) -> None:
    for look in listen(model):
        assert not any(part.requires_grad for part in (look.weights_BNTS, look.queries, look.keys, look.values))


def test_the_watcher_hears_nothing_after_the_block_even_when_it_ended_in_an_error(model: EncoderDecoder) -> None:
    with contextlib.suppress(RuntimeError), watch(model) as looks:
        run(model)
        raise RuntimeError
    run(model)
    assert len(looks) == 3 * LAYERS


def test_another_model_is_not_heard(model: EncoderDecoder) -> None:
    other = small_model(seed=1)
    with watch(model) as looks:
        run(other)
    assert len(looks) == 0


def test_two_threads_watching_one_model_do_not_hear_each_other() -> None:
    model = small_model(layers=LAYERS)
    sources = [random_sequences([length], seed=length) for length in (4, 9)]
    everyone_watches, everyone_ran = threading.Barrier(2, timeout=30), threading.Barrier(2, timeout=30)
    heard: dict[int, TensorsHeard] = {}

    def look_at(number: int) -> None:
        with watch(model) as looks:
            everyone_watches.wait()
            for _ in range(5):
                read(model, sources[number])
            everyone_ran.wait()
        heard[number] = looks

    threads = [threading.Thread(target=look_at, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    for number, source in enumerate(sources):
        with watch(model) as alone:
            read(model, source)
        assert len(heard[number]) == 5 * LAYERS
        assert torch.equal(heard[number].encoder, alone.encoder.repeat(5, 1, 1, 1, 1))


def test_a_thread_that_does_not_watch_is_not_heard() -> None:
    model = small_model()
    with watch(model) as looks:
        thread = threading.Thread(target=run, args=(model,))
        thread.start()
        thread.join(timeout=60)
    assert len(looks) == 0
