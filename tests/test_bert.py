"""BERT: transformers' own numbers with the same weights, the published size, and hiding that keeps to its shares."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn
from transformers import BertConfig as TheirConfig
from transformers import BertForPreTraining, BertForSequenceClassification, BertForTokenClassification

from saccade.arch.bert import BertConfig
from saccade.arch.heads import ClassHead
from saccade.data.corrupt import Hider, MaskingConfig
from saccade.data.rows import EPOCH, Rows
from saccade.data.sentences import UNKNOWN, Corpus, plan_rows, sentences_of
from saccade.models.bert import Bert, MaskedModel, build_masked
from saccade.models.heads import ClassifierModel, TaggerModel
from saccade.tasks.encoder import with_mask
from saccade.tokens.marks import Marks
from saccade.tokens.vocabulary import TokensConfig, Vocabulary, train_vocabulary
from saccade.train.objective import MaskedObjective

MARKS = Marks()
BEGIN, END, PAD = MARKS.begin, MARKS.end, MARKS.pad

VOCABULARY = 50
SIZES = [(1, 8, 2, 16), (3, 24, 4, 40), (2, 16, 1, 64)]

DOCUMENTS = [
    "One day a dog ran off. It ran and ran! Did it come back? It did. Then all was well again.",
    "A ship went to sea.\nThe sea was wide and the wind was strong. So they came home.",
    "Bread is made of flour. Flour is made of corn. Corn grows in fields, and fields need rain and sun.",
    "I like tea.",
    "You like milk.",
    "They like water.",
] * 3


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    return with_mask(train_vocabulary(TokensConfig(vocabulary=300), DOCUMENTS, spaced=False))


@pytest.fixture(scope="module")
def corpus(vocabulary: Vocabulary) -> Corpus:
    return Corpus.of(vocabulary, DOCUMENTS)


# The same weights in transformers


def configs(layers: int, width: int, heads: int, hidden: int) -> tuple[BertConfig, TheirConfig]:
    ours = BertConfig(layers=layers, width=width, heads=heads, feedforward=hidden, context=12, dropout=0.0)
    theirs = TheirConfig(
        vocab_size=VOCABULARY,
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        intermediate_size=hidden,
        max_position_embeddings=12,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        num_labels=3,
    )
    return ours, theirs


def theirs_of(model: nn.Module, layers: int) -> dict[str, Tensor]:
    """Our weights under their names."""
    ours = dict(model.named_parameters())
    names = {
        "encoder.embed.tokens.weight": "bert.embeddings.word_embeddings.weight",
        "encoder.embed.positions.vectors.weight": "bert.embeddings.position_embeddings.weight",
        "encoder.embed.segments.weight": "bert.embeddings.token_type_embeddings.weight",
        "encoder.embed.norm": "bert.embeddings.LayerNorm",
        "pooler.dense": "bert.pooler.dense",
        "words.dense": "cls.predictions.transform.dense",
        "words.norm": "cls.predictions.transform.LayerNorm",
        "words.head.bias": "cls.predictions.bias",
        "follows": "cls.seq_relationship",
        "head": "classifier",
    }
    for layer in range(layers):
        mine, their = f"encoder.blocks.{layer}", f"bert.encoder.layer.{layer}"
        names |= {
            f"{mine}.self_attention.out": f"{their}.attention.output.dense",
            f"{mine}.around_self.norm": f"{their}.attention.output.LayerNorm",
            f"{mine}.feedforward.widen": f"{their}.intermediate.dense",
            f"{mine}.feedforward.narrow": f"{their}.output.dense",
            f"{mine}.around_feedforward.norm": f"{their}.output.LayerNorm",
        }
    found: dict[str, Tensor] = {}
    for mine, their in names.items():
        for end in ("", ".weight", ".bias"):
            if mine + end in ours:
                found[their + end] = ours[mine + end].detach()
    for layer in range(layers):
        for end in ("weight", "bias"):
            stack = ours[f"encoder.blocks.{layer}.self_attention.project.{end}"].detach()
            for name, part in zip(("query", "key", "value"), stack.chunk(3), strict=True):
                found[f"bert.encoder.layer.{layer}.attention.self.{name}.{end}"] = part
    return found


def with_random_weights(model: nn.Module) -> Any:
    torch.manual_seed(1)
    for weight in model.parameters():
        nn.init.normal_(weight, std=0.3)
    return model.eval()


def load_into(other: nn.Module, weights: dict[str, Tensor]) -> None:
    missing, unexpected = other.load_state_dict(weights, strict=False)
    assert not unexpected
    tied = {"cls.predictions.decoder.weight", "cls.predictions.decoder.bias"}
    assert {name for name in missing if not name.endswith("_ids")} <= tied
    other.eval()


def batch() -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    tokens_BT = torch.randint(VOCABULARY, (3, 12), generator=generator)
    mask_BT = torch.arange(12) < torch.tensor([12, 7, 1])[:, None]
    segments_BT = (torch.arange(12) > 4).long().expand(3, 12)
    return tokens_BT, mask_BT, segments_BT


@pytest.mark.parametrize("sizes", SIZES)
def test_masked_words_and_what_follows_are_transformers(sizes: tuple[int, int, int, int]) -> None:
    ours, theirs = configs(*sizes)
    model: MaskedModel = with_random_weights(build_masked(ours, VOCABULARY, follows=True))
    other = BertForPreTraining(theirs)
    load_into(other, theirs_of(model, sizes[0]))
    tokens_BT, mask_BT, segments_BT = batch()
    with torch.inference_mode():
        words, follows = model(tokens_BT, mask_BT, segments_BT)
        expected = other(input_ids=tokens_BT, attention_mask=mask_BT.long(), token_type_ids=segments_BT)
    torch.testing.assert_close(words[mask_BT], expected.prediction_logits[mask_BT], atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(follows, expected.seq_relationship_logits, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("sizes", SIZES)
def test_classes_and_tags_are_transformers(sizes: tuple[int, int, int, int]) -> None:
    ours, theirs = configs(*sizes)
    tokens_BT, mask_BT, segments_BT = batch()
    classifier: ClassifierModel = with_random_weights(
        ClassifierModel(Bert(ours, VOCABULARY), ClassHead(outputs=3), 0.0)
    )
    other = BertForSequenceClassification(theirs)
    load_into(other, theirs_of(classifier, sizes[0]))
    tagger: TaggerModel = with_random_weights(TaggerModel(Bert(ours, VOCABULARY), 3, 0.0))
    tagging = BertForTokenClassification(theirs)
    load_into(tagging, theirs_of(tagger, sizes[0]))
    words_BT = mask_BT & (torch.arange(12) % 2 == 0)
    asked = {"input_ids": tokens_BT, "attention_mask": mask_BT.long()}
    with torch.inference_mode():
        classes = classifier(tokens_BT, mask_BT, segments_BT)
        expected = other(**asked, token_type_ids=segments_BT).logits
        tags = tagger(tokens_BT, mask_BT, words_BT)
        expected_tags = tagging(**asked).logits[words_BT]
    torch.testing.assert_close(classes, expected, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(tags, expected_tags, atol=1e-4, rtol=1e-4)


def test_bert_base_has_the_published_number_of_weights() -> None:
    config = BertConfig(layers=12, width=768, heads=12, feedforward=3072, context=512)
    with torch.device("meta"):
        model = build_masked(config, 30_522, follows=True)
    assert model.pooler is not None
    counted = [*model.encoder.parameters(), *model.pooler.parameters()]
    assert sum(weight.numel() for weight in counted) == 109_482_240
    assert model.words.head.weight is model.encoder.embed.tokens.weight


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("positions", ["learned", "rotary", "sinusoidal"])
def test_padding_changes_nothing(norm: str, positions: str) -> None:
    table = {"layers": 2, "width": 16, "heads": 2, "feedforward": 24, "context": 12, "order": norm, "dropout": 0.0}
    where = {"kind": positions, "length": 12} if positions == "learned" else {"kind": positions}
    model = with_random_weights(
        build_masked(BertConfig.read(table | {"positions": where}, where="test"), 20, follows=False)
    )
    tokens_BT = torch.randint(3, 20, (1, 7), generator=torch.Generator().manual_seed(0))
    padded = nn.functional.pad(tokens_BT, (0, 5))
    with torch.inference_mode():
        alone, _ = model(tokens_BT)
        beside, _ = model(padded, padded != PAD)
    torch.testing.assert_close(beside[:, :7], alone, atol=1e-5, rtol=1e-5)


# Hiding


def test_shares_of_hidden_masked_replaced_and_kept_tokens(vocabulary: Vocabulary) -> None:
    hider = Hider.of(MaskingConfig(), vocabulary)
    random = np.random.default_rng(0)
    words = len(vocabulary) - END - 1
    counts = np.zeros(4)
    for number in range(300):
        row = np.concatenate([[BEGIN], random.integers(END + 1, len(vocabulary), 60 + number % 40), [END], [PAD] * 3])
        read, chosen = hider.hide(row, np.random.default_rng(number))
        assert not chosen[(row <= END)].any(), "marks and padding are never hidden"
        assert chosen.sum() == round(0.15 * (row > END).sum())
        assert (read == row)[~chosen].all(), "what is not chosen is read as it is"
        assert ((read > END) | (read == row)).all(), "no token becomes a mark"
        hidden = read[chosen]
        counts += [chosen.sum(), (hidden == vocabulary.marks.mask).sum(), (hidden == row[chosen]).sum(), 0]
    total, masked, kept, _ = counts
    for share, expected in ((masked / total, 0.8), (kept / total, 0.1 + 0.1 / words)):
        assert abs(share - expected) < 4 * math.sqrt(expected * (1 - expected) / total)


@given(st.integers(0, 2**32))
def test_random_tokens_are_those_that_a_range_of_ids_gives(vocabulary: Vocabulary, seed: int) -> None:
    """What was trained with the marks as constants is trained the same today."""
    hider = Hider.of(MaskingConfig(share=0.9, masked=0.0), vocabulary)
    row = np.array([BEGIN, *range(END + 1, END + 41), END, PAD])
    read, chosen = hider.hide(row, np.random.default_rng(seed))
    random = np.random.default_rng(seed)
    expected, words = row.copy(), np.flatnonzero(row > END)
    places = np.sort(random.permutation(words)[: round(0.9 * len(words))])
    replaced = places[random.random(len(places)) < 0.5]
    expected[replaced] = random.integers(END + 1, len(vocabulary), len(replaced))
    assert np.flatnonzero(chosen).tolist() == places.tolist()
    assert read.tolist() == expected.tolist()


def test_a_mask_that_a_vocabulary_has_stays() -> None:
    vocabulary = train_vocabulary(TokensConfig(vocabulary=300), DOCUMENTS, spaced=False)
    assert with_mask(vocabulary).marks == Marks(mask=len(vocabulary))
    vocabulary.marks = Marks(mask=7)
    assert with_mask(vocabulary).marks.mask == 7


def test_whole_words_are_hidden_whole(vocabulary: Vocabulary) -> None:
    hider = Hider.of(MaskingConfig(whole_words=True, mask_token_share=1.0), vocabulary)
    text = "strawberries and blueberries grow wherever somebody planted them, unquestionably"
    row = np.array([BEGIN, *vocabulary.encode([text])[0], END])
    starts = [place for place, piece in enumerate(vocabulary.pieces(row)) if not piece[:1].isalnum() or place == 1]
    words = [range(first, last) for first, last in zip(starts, [*starts[1:], len(row)], strict=True)]
    assert max(map(len, words)) > 2, "some word has several pieces"
    shares = []
    for seed in range(200):
        _, chosen = hider.hide(row, np.random.default_rng(seed))
        assert chosen.any()
        for word in words:
            assert len(set(chosen[word])) == 1
        shares.append(chosen.sum() / (len(row) - 2))
    assert np.mean(shares) == pytest.approx(0.15, abs=0.05)


# Rows of documents


def test_sentences_are_the_document() -> None:
    text = 'He said: "Go." Then he left!  Why? Mr. X knows.\n\nA new line'
    sentences = sentences_of(text)
    assert " ".join("".join(sentences).split()) == " ".join(text.split())
    assert [sentence.strip() for sentence in sentences][-2:] == ["X knows.", "A new line"]
    assert len(sentences) >= 5


@pytest.mark.parametrize("next_sentence", [True, False])
def test_rows_hold_every_token_within_the_room(corpus: Corpus, next_sentence: bool) -> None:
    rows = plan_rows(corpus, 30, np.random.default_rng(0), next_sentence=next_sentence)
    met = np.zeros(corpus.tokens, dtype=int)
    for row in rows:
        size = sum(stop - start for start, stop in (row.first, row.second))
        assert 0 < size <= 30
        met[slice(*row.first)] += 1
        if row.next_sentence != 0:
            met[slice(*row.second)] += 1
        if row.next_sentence == 1:
            assert row.second[0] == row.first[1]
    assert (met >= 1).mean() > 0.95, "only what is longer than a row may be cut"
    if not next_sentence:
        assert met.max() == 1
        assert {row.next_sentence for row in rows} == {UNKNOWN}


def test_half_of_the_pairs_follow_and_no_false_one_is_of_the_same_document(corpus: Corpus) -> None:
    starts = corpus.sentences.starts[corpus.documents]
    found = []
    for seed in range(60):
        for row in plan_rows(corpus, 30, np.random.default_rng(seed), next_sentence=True):
            if row.next_sentence == UNKNOWN:
                continue
            homes = [int(np.searchsorted(starts, place, side="right")) for place in (row.first[0], row.second[0])]
            assert (homes[0] == homes[1]) == bool(row.next_sentence)
            found.append(row.next_sentence)
    assert abs(np.mean(found) - 0.5) < 4 * 0.5 / math.sqrt(len(found))


@pytest.mark.parametrize("static", [True, False])
def test_batches_are_the_same_whenever_they_are_asked_for(corpus: Corpus, vocabulary: Vocabulary, static: bool) -> None:
    def make() -> Rows:
        return Rows(corpus, vocabulary.marks, context=32, budget=128, seed=3, next_sentence=True, static=static)

    hider = Hider.of(MaskingConfig(), vocabulary)
    one = make()
    numbers = [next(one) for _ in range(3 * len(one.batches))]
    batches = [one.masked(part, hider) for part in numbers]
    other = make()
    other.load_state_dict(one.state_dict())
    for part, before in zip(numbers, batches, strict=True):
        again = other.masked(part, hider)
        assert torch.equal(again.tokens_BT, before.tokens_BT)
        assert torch.equal(again.labels_N, before.labels_N)
        assert before.tokens_BT.shape[1] <= 32
        assert int(part[0]) // EPOCH in range(5)
    assert np.array_equal(next(one), next(other))
    first = {tuple(batch.tokens_BT[0].tolist()) for batch in batches}
    assert len(first) > len(batches) // 2, "epochs hide other words"


def test_the_loss_is_the_mean_over_hidden_words_plus_that_over_pairs(corpus: Corpus, vocabulary: Vocabulary) -> None:
    rows = Rows(corpus, vocabulary.marks, context=32, budget=4096, seed=0, next_sentence=True)
    found = rows.masked(next(rows), Hider.of(MaskingConfig(), vocabulary))
    config = BertConfig(layers=1, width=16, heads=2, feedforward=24, context=32, dropout=0.0)
    model: MaskedModel = with_random_weights(build_masked(config, len(vocabulary) + 1, follows=True))
    losses, count = MaskedObjective()(model, found), MaskedObjective().count(found)
    words, follows = model(found.tokens_BT, found.mask_BT, found.segments_BT)
    expected = nn.functional.cross_entropy(words[found.chosen_BT], found.labels_N)
    expected = expected + nn.functional.cross_entropy(follows, found.next_sentence_B, ignore_index=UNKNOWN)
    torch.testing.assert_close(losses["loss"][0] / count, expected, atol=1e-4, rtol=1e-4)
