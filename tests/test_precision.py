"""Products in bfloat16: near the exact gradients for every family, and only where the processor has them."""

import numpy as np
import pytest
import torch
from torch import nn, optim

from conftest import MARKS
from saccade.arch.encoder_decoder import EncoderDecoderConfig
from saccade.data.batches import SequencePairs
from saccade.data.ragged import Ragged
from saccade.models.encdec import build_encoder_decoder
from saccade.train import precision
from saccade.train.loss import cross_entropy
from saccade.train.muon import Muon
from saccade.train.objective import SequenceObjective
from saccade.train.parts import BatchParts

VOCABULARY = 50
STACK = {"layers": 2, "width": 64, "heads": 2, "feedforward": 128, "dropout": 0.0}
RECURRENT = {"kind": "recurrent", "layers": 2, "width": 48, "embed": 32, "dropout": 0.0}
MODELS = {
    "transformer": {"encoder": STACK, "decoder": STACK},
    "gru": {"encoder": {**RECURRENT, "cell": "gru"}, "decoder": {**RECURRENT, "cell": "gru", "attention": "additive"}},
    "lstm": {"encoder": {**RECURRENT, "cell": "lstm"}, "decoder": {**RECURRENT, "cell": "lstm", "attention": "dot"}},
}


def gradients(name: str, kind: torch.dtype) -> tuple[float, torch.Tensor]:
    torch.manual_seed(0)
    model = build_encoder_decoder(EncoderDecoderConfig.read(MODELS[name], where=name), VOCABULARY).train()
    random = np.random.default_rng(0)
    source, target = (
        Ragged.of([random.integers(5, VOCABULARY, random.integers(2, 12)).tolist() for _ in range(16)])
        for _ in range(2)
    )
    objective = SequenceObjective(smoothing=0.1)
    batch = SequencePairs(source, target, MARKS).batch(np.arange(16))
    parts = BatchParts(model, objective, 1, kind=kind)
    (losses,) = parts.add_gradients([batch], objective.count(batch))
    found = [weight.grad for weight in model.parameters()]
    assert all(gradient is not None and gradient.dtype == torch.float32 for gradient in found)
    return losses["loss"], torch.cat([gradient.flatten() for gradient in found if gradient is not None])


@pytest.mark.parametrize("name", MODELS)
def test_rounded_products_give_nearly_the_same_loss_and_gradients(name: str) -> None:
    (exact_loss, exact), (loss, found) = (gradients(name, kind) for kind in (torch.float32, torch.bfloat16))
    assert not torch.equal(found, exact), "else nothing was rounded"
    assert loss == pytest.approx(exact_loss, rel=5e-3)
    assert float(torch.cosine_similarity(found, exact, dim=0)) > 0.999


def test_the_loss_is_summed_exactly_whatever_was_rounded_before() -> None:
    torch.manual_seed(0)
    features_ND, head, labels_N = torch.randn(3000, 16).bfloat16(), nn.Linear(16, 30), torch.randint(30, (3000,))
    with torch.autocast("cpu", torch.bfloat16):
        loss, likelihood = cross_entropy(features_ND, head, labels_N, 0.1)
    assert loss.dtype == likelihood.dtype == torch.float32
    exact = nn.functional.cross_entropy(head(features_ND.float()), labels_N, reduction="sum")
    assert likelihood.item() == pytest.approx(exact.item(), rel=1e-3)


@pytest.mark.parametrize("able", ["avx512_bf16", "amx_bf16", "avx512_f"])
def test_only_a_processor_that_multiplies_bfloat16_is_asked_to(able: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {able: True})
    expected = torch.bfloat16 if able.endswith("bf16") else torch.float32
    assert precision.kind_of_products("auto") == expected
    assert precision.kind_of_products("float32") == torch.float32


def test_muon_with_rounded_products_steps_as_pytorchs() -> None:
    torch.manual_seed(0)
    start = torch.randn(24, 96)
    ours, theirs = nn.Parameter(start.clone()), nn.Parameter(start.clone())
    group = {"params": [ours], "momentum": 0.9, "sizes": [(24,)], "weight_decay": 0.1}
    mine = Muon([group], kind=torch.bfloat16, lr=0.1)
    other = optim.Muon([theirs], lr=0.1, momentum=0.9, weight_decay=0.1, adjust_lr_fn="match_rms_adamw")
    for _ in range(4):
        ours.grad = torch.randn(start.shape)
        theirs.grad = ours.grad.clone()
        mine.step()
        other.step()
    assert float((ours - theirs).detach().norm() / (ours - start).detach().norm()) < 0.02
