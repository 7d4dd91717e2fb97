"""What attention layers say of themselves: kinds and memories are said by the site, never read from a name."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from saccade.errors import WrongUse
from saccade.nn.multihead import CrossAttention, SelfAttention
from saccade.nn.watch import watch
from saccade.runtime.layers import attend
from saccade.runtime.watch import watching
from saccade.sites import Edit, Site

WIDTH, HEADS, TARGET, PICTURE, QUESTION = 8, 2, 3, 6, 4


class Asked(nn.Module):
    """Writes while it looks at a picture and at a question, under names that say nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.crossing = SelfAttention(WIDTH, HEADS, site=Site.decoder())
        self.encoder_one = CrossAttention(WIDTH, HEADS, WIDTH, memory="picture")
        self.self_two = CrossAttention(WIDTH, HEADS, WIDTH, memory="question")

    def forward(self, x: Tensor, picture: Tensor, question: Tensor) -> Tensor:
        x = x + self.crossing(x)
        x = x + self.encoder_one(x, self.encoder_one.keys_values(picture))
        return x + self.self_two(x, self.self_two.keys_values(question))


@pytest.fixture
def asked() -> tuple[Asked, list[Tensor]]:
    torch.manual_seed(0)
    return Asked(), [torch.randn(1, length, WIDTH) for length in (TARGET, PICTURE, QUESTION)]


def test_looks_at_each_memory_are_heard_under_its_own_name(asked: tuple[Asked, list[Tensor]]) -> None:
    model, inputs = asked
    with watch(model) as heard:
        model(*inputs)
    assert [look.site for look in heard] == [Site.decoder(), Site.cross("picture"), Site.cross("question")]
    assert heard.of("cross", "picture").shape == (1, 1, HEADS, TARGET, PICTURE)
    assert heard.of("cross", "question").shape == (1, 1, HEADS, TARGET, QUESTION)
    assert heard.decoder.shape == (1, 1, HEADS, TARGET, TARGET)
    with pytest.raises(WrongUse, match="picture and question"):
        _ = heard.cross


def test_positions_are_hidden_in_one_memory_only(asked: tuple[Asked, list[Tensor]]) -> None:
    model, inputs = asked
    with watch(model, Edit(without_memory={"question": [1, 3]})) as heard:
        model(*inputs)
    assert not heard.of("cross", "question")[..., [1, 3]].any()
    assert heard.of("cross", "question")[..., [0, 2]].all()
    assert heard.of("cross", "picture").all()
    assert heard.decoder.all()


def test_the_plain_runtime_tells_memories_apart_too() -> None:
    q, k, v = (np.random.default_rng(0).normal(size=(1, HEADS, 5, 4)).astype(np.float32) for _ in range(3))
    with watching(Edit(without_memory={"picture": [2]})) as heard:
        attend("one", Site.cross("picture"), q, k, v)
        attend("two", Site.cross("question"), q, k, v)
    assert not heard.of("cross", "picture")[..., 2].any()
    assert heard.of("cross", "question").all()
    assert "picture" in repr(heard)


def test_source_and_target_are_memories_by_name() -> None:
    edit = Edit(without_source=[1], without_target=[2], without_memory={"source": [4], "picture": [0]})
    assert edit.hidden(Site.encoder(), 5) == edit.hidden(Site.cross(), 5) == [1, 4]
    assert edit.hidden(Site.decoder(), 5) == [2]
    assert edit.hidden(Site.encoder("picture"), 5) == [0]
    assert edit.hidden(Site.cross(), 3) == [1], "there is no position 4 of 3"


def test_looks_of_several_sizes_are_not_stacked() -> None:
    q = np.zeros((1, 1, 1, 4), dtype=np.float32)
    with watching() as heard:
        for length in (1, 2):
            keys = np.zeros((1, 1, length, 4), dtype=np.float32)
            attend("decoder", Site.decoder(), q, keys, keys)
    with pytest.raises(WrongUse, match="2 sizes"):
        heard.of("decoder")
