"""Augmented copies: both sides stay translations of each other, and a seed gives the same copies."""

import hashlib
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from saccade.config import override, read_toml
from saccade.data.augment import AugmentConfig, Augmenter
from saccade.data.copies import Copies, encode_copies
from saccade.data.exchange import Names, exchange_numbers, invented_name
from saccade.data.odd_strings import STRINGS, with_string
from saccade.data.ragged import Ragged
from saccade.data.sources import HeldOutSource, Mixture, TrainingSource, plain_form, read_mixture, spread
from saccade.data.text import Pair
from saccade.data.variants import (
    join_lines,
    lower,
    title,
    upper,
    with_slips,
    without_apostrophes,
    without_final_mark,
    without_opening_marks,
)
from saccade.errors import UserError
from saccade.tasks.translation import TranslationRecipe, TranslationTask, held_pairs, training_copies
from saccade.tokens.vocabulary import TokensConfig, train_vocabulary
from toy_trainings import write_toy

EVERYTHING = AugmentConfig(
    **dict.fromkeys(("join_two", "join_three", "upper", "title", "lower", "no_apostrophes", "no_final_mark"), 0.2),
    **dict.fromkeys(("no_opening_marks", "names", "numbers", "strings"), 0.3),
    bpe_dropout=0.2,
    bpe_dropout_share=0.5,
)
"""All but typos, which would make the words that the tests recognise sentences by unrecognisable."""
PEOPLE = ["Tom", "Mary", "Anna", "Kemal", "Olga", "Boris", "Chen", "Ravi", "Ingrid", "Pablo", "Yuki", "Omar"]


def draw(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def mark(number: int) -> str:
    """A word that stands for one sentence and that no augmentation takes for a name or a number."""
    return "id" + "".join("abcdefghij"[int(digit)] for digit in f"{number:05d}")


def numbered_pairs(count: int) -> list[Pair]:
    return [
        (
            f"Don't ask {PEOPLE[i % 12]} about {mark(i)} in {1960 + i % 50}{'.?!'[i % 3]}",
            f"¿No le preguntes a {PEOPLE[i % 12]} por {mark(i)} en {1960 + i % 50}{'.?!'[i % 3]}",
        )
        for i in range(count)
    ]


def marks(text: str) -> list[str]:
    return re.findall(r"id[a-j]{5}", text.lower())


def copies(pairs: list[Pair], config: AugmentConfig = EVERYTHING, *, count: int = 3, seed: int = 1) -> Copies:
    return Copies(Mixture.of(pairs), Augmenter.of(config, pairs), count=count, plain=1, seed=seed)


# Whole copies


def test_no_line_loses_its_translation() -> None:
    pairs = numbered_pairs(3000)
    lines = list(copies(pairs).copy(0))
    assert all(marks(source) == marks(target) for source, target in lines)
    assert sorted(found for source, _ in lines for found in marks(source)) == sorted(mark(i) for i in range(3000))
    assert len(lines) < 2500, "some are joined"
    assert sum(line in set(pairs) for line in lines) < 1000, "most are changed"


def test_a_seed_gives_the_same_copies_and_copies_differ() -> None:
    pairs = numbered_pairs(300)
    first, second = copies(pairs), copies(pairs)
    vocabulary = train_vocabulary(TokensConfig(vocabulary=500), (side for pair in pairs for side in pair))
    arrays = [encode_copies(vocabulary, made, 250) for made in (first, second)]
    assert all(np.array_equal(arrays[0][name], arrays[1][name]) for name in arrays[0])
    assert list(first.copy(0)) != list(first.copy(1))
    assert list(first.copy(0)) != list(copies(pairs, seed=2).copy(0))


def test_the_plain_copies_are_the_pairs() -> None:
    pairs = numbered_pairs(50)
    made = Copies(Mixture.of(pairs), Augmenter.of(EVERYTHING, pairs), count=4, plain=2, seed=1)
    assert [list(made.copy(number)) == pairs for number in range(4)] == [False, False, True, True]
    vocabulary = train_vocabulary(TokensConfig(vocabulary=500), (side for pair in pairs for side in pair))
    arrays = encode_copies(vocabulary, made, 250)
    last = int(arrays["starts"][3])
    for side, texts in zip(("source", "target"), zip(*pairs, strict=True), strict=True):
        ids = Ragged(arrays[side], arrays[f"{side}_lengths"])
        assert arrays[side].dtype == np.uint16
        assert [ids[i].tolist() for i in range(last, len(ids))] == vocabulary.encode(texts), "without BPE dropout"


def test_encoding_in_chunks_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = numbered_pairs(100)
    config = EVERYTHING.model_copy(update={"bpe_dropout": 0.0})
    vocabulary = train_vocabulary(TokensConfig(vocabulary=500), (side for pair in pairs for side in pair))
    whole = encode_copies(vocabulary, copies(pairs, config), 40)
    monkeypatch.setattr("saccade.data.copies.CHUNK", 7)
    told: list[tuple[int, int]] = []
    parts = encode_copies(vocabulary, copies(pairs, config), 40, lambda done, total: told.append((done, total)))
    assert all(np.array_equal(whole[name], parts[name]) for name in whole)
    assert whole["count"] > len(whole["numbers"]), "long lines are left out"
    assert told == sorted(told)
    assert told[-1] == (300, 300)


def test_nothing_is_changed_by_default() -> None:
    assert not AugmentConfig().changes_anything
    pairs = numbered_pairs(40)
    assert list(Augmenter.of(AugmentConfig(), pairs)(pairs, draw())) == pairs


# Lines


def test_joined_lines_are_the_same_sentences_joined_on_both_sides() -> None:
    pairs = numbered_pairs(1000)
    lines = list(join_lines(pairs, 0.15, 0.05, 60, draw()))
    place, lengths = 0, Counter[int]()
    for source, target in lines:
        parts = pairs[place : place + len(marks(source))]
        assert source == " ".join(one for one, _ in parts)
        assert target == " ".join(one for _, one in parts)
        place += len(parts)
        lengths[len(parts)] += 1
    assert place == 1000
    assert 0.11 < lengths[2] / len(lines) < 0.19
    assert 0.03 < lengths[3] / len(lines) < 0.07


def test_lines_are_joined_only_where_sentences_end_and_up_to_the_limit() -> None:
    whole = ("It rains.", "Llueve.")
    for other in [("no mark", "sin marca"), ("no Capital.", "sin mayúscula."), ("A mark.", "Falta"), whole]:
        assert list(join_lines([whole, other], 1.0, 0.0, 60, draw())) == [whole, other], other
    assert list(join_lines([whole, ("So what?", "¿Y qué?")], 1.0, 0.0, 60, draw())) == [
        ("It rains. So what?", "Llueve. ¿Y qué?")
    ]
    assert len(list(join_lines(numbered_pairs(9), 0.0, 1.0, 10, draw()))) == 9
    for source, target in join_lines(numbered_pairs(60), 0.0, 1.0, 20, draw()):
        assert max(len(source.split()), len(target.split())) <= 20


# Spelling


def test_case_is_changed_on_both_sides_and_addresses_keep_theirs() -> None:
    pairs = [("Don't write to Tom@x.org, EU!", "¡No escribas a Tom@x.org, UE!")]
    for setting, source, target in [
        ("upper", "DON'T WRITE TO Tom@x.org, EU!", "¡NO ESCRIBAS A Tom@x.org, UE!"),
        ("title", "Don't Write To Tom@x.org, EU!", "¡No Escribas A Tom@x.org, UE!"),
    ]:
        augmenter = Augmenter.of(AugmentConfig.model_validate({setting: 1.0}), pairs)
        assert list(augmenter(pairs, draw())) == [(source, target)]
    augmenter = Augmenter.of(AugmentConfig(lower=1.0), pairs)
    found = {line for seed in range(40) for line in augmenter(pairs, draw(seed))}
    assert found == {
        (f"{word} write to Tom@x.org, eu{mark}", f"{opening}no escribas a Tom@x.org, ue{mark}")
        for word in ("don't", "dont")
        for mark, opening in (("!", "¡"), ("", ""))
    }
    assert (upper("ça"), lower("ÇA"), title("«l'été» ¿qué?")) == ("ÇA", "ça", "«L'été» ¿Qué?")


def test_apostrophes_are_lost_in_contractions_only() -> None:
    assert without_apostrophes("I don't think it’s Tom's, they'll see.") == "I dont think its Tom's, theyll see."
    assert without_apostrophes("It's 5 o'clock, Mr O'Brien's 'own' time") == "Its 5 oclock, Mr O'Brien's 'own' time"


@pytest.mark.parametrize(
    ("pair", "expected"),
    [
        (("Where?", "¿Dónde?"), ("Where", "Dónde")),
        (("Tom, where are you?", "Tom, ¿dónde estás?"), ("Tom, where are you", "Tom, dónde estás")),
        (("What? Now?", "¿Qué? ¿Ahora?"), ("What? Now", "¿Qué? Ahora")),
        (("Go.", "¡Vete!"), ("Go", "Vete")),
        (("Well...", "Bueno…"), ("Well", "Bueno")),
        (("Where are they?", "Où sont-ils ?"), ("Where are they", "Où sont-ils")),
        (("No mark", "Con marca."), ("No mark", "Con marca.")),
        (("At 3 a.m.", "A las 3 a. m."), ("At 3 a.m.", "A las 3 a. m.")),
        (("?", "?"), ("?", "?")),
    ],
)
def test_the_final_mark_is_lost_on_both_sides_with_its_opening_mark(pair: Pair, expected: Pair) -> None:
    assert without_final_mark(pair) == expected


def test_opening_marks_are_lost() -> None:
    assert without_opening_marks("¡Hola! ¿Qué tal?") == "Hola! Qué tal?"


def test_slips_are_few_and_spare_names_numbers_and_addresses() -> None:
    source = "Yesterday Margaret bought 2500 oranges from www.oranges.example for everybody."
    found = {with_slips(source, draw(seed)) for seed in range(100)}
    assert len(found) > 60
    for slipped in found:
        words, others = source.split(), slipped.split()
        assert len(words) == len(others)
        different = [word for word, other in zip(words, others, strict=True) if word != other]
        assert len(different) <= 2
        assert {"Margaret", "2500", "www.oranges.example"}.isdisjoint(different)
        assert all(word[0] == other[0] for word, other in zip(words, others, strict=True))
    assert with_slips("It is 5.", draw()) == "It is 5."


# Names, numbers, strings

SAID = [
    (f"I saw {one} with {other} in the {word} park.", f"Vi a {one} con {other} en el parque {word}.")
    for one in PEOPLE
    for other in PEOPLE
    for word in ("central", "Central")
    if one != other
]


def test_a_name_is_exchanged_on_both_sides_for_one_of_its_context_or_an_invented_one() -> None:
    names = Names.collect(SAID)
    assert names.known == frozenset(PEOPLE), "a word that is also written in lower case is no name"
    assert names.after["saw", "a"] == sorted(PEOPLE)
    pair = ("I saw Tom with Mary. Tom's dog came.", "Vi a Tom con Mary. El perro de Tom vino.")
    invented = 0
    for seed in range(60):
        source, target = names.exchange(pair, draw(seed))
        assert (source, target) != pair or seed
        words = re.findall(r"[^\W\d_]+", source)
        assert words[2] == words[5] or (words[2], words[5]) == ("Tom", "Tom")
        assert target == f"Vi a {words[2]} con {words[4]}. El perro de {words[5]} vino."
        assert words[2] in PEOPLE or words[4] == "Mary"
        invented += words[2] not in PEOPLE or words[4] not in PEOPLE
    assert 15 < invented < 45
    assert names.exchange(("I saw the sea.", "Vi el mar."), draw()) == ("I saw the sea.", "Vi el mar.")


def test_an_unknown_name_gets_no_article() -> None:
    lands = ["Portugal", "Chile", "Canada", "Niger", "Congo", "Mali", "Laos", "Togo"]
    pairs = [(f"He left {land} for Oslo.", f"Il a quitté le {land} pour Oslo.") for land in lands]
    names = Names.collect(pairs)
    for seed in range(30):
        source, _ = names.exchange(("He left Chile.", "Il a quitté le Chile."), draw(seed))
        assert source.split()[-1].strip(".") in lands


def test_invented_names_keep_vowel_or_consonant_in_front() -> None:
    for seed in range(200):
        assert invented_name("Anna", draw(seed))[0] == "A"
        assert invented_name("Tom", draw(seed))[0].lower() not in "aeiouh"


def test_numbers_stay_equal_on_both_sides_and_keep_their_digits() -> None:
    pair = ("On 14 May 1987, 2,500 of 81 people; 7 of COVID-19.", "El 14 mayo 1987, 2.500 de 81; 7 de COVID-19.")
    for seed in range(50):
        source, target = exchange_numbers(pair, draw(seed))
        assert re.findall(r"\d+", source) == re.findall(r"\d+", target)
        assert [len(number) for number in re.findall(r"\d+", source)] == [2, 4, 1, 3, 2, 1, 2]
        assert 10 <= int(re.findall(r"\d+", source)[0]) <= 23
        assert source.endswith("COVID-19.")
        assert source != pair[0]
    alone = ("1 day, 3 or 4", "1 día, tres o cuatro")
    assert exchange_numbers(alone, draw()) == alone, "one of something, and numbers in words, stay"


def test_odd_strings_are_the_same_on_both_sides() -> None:
    kinds = Counter[bool]()
    for seed in range(300):
        source, target = with_string(("Is it so?", "Est-ce ainsi ?"), draw(seed))
        string = re.sub(r"Is it so|\?| \(|\)", "", source).strip()
        assert string
        assert string == re.sub(r"Est-ce ainsi| \?|\?| \(|\)", "", target).strip()
        kinds[string.isascii()] += 1
    assert kinds[False] > 30
    assert all(make(draw()) != make(draw(1)) for make in STRINGS.values())


# Sources


def write_tsv(path: Path, pairs: list[Pair]) -> None:
    path.write_text("".join(f"{source}\t{target}\tignored\n" for source, target in pairs), encoding="utf-8")


def test_held_out_sentences_are_dropped_from_training_and_counted(tmp_path: Path) -> None:
    write_tsv(tmp_path / "a.tsv", [("Stop it!", "¡Para!"), ("Go on.", "Sigue."), ("Yes", "Sí")])
    write_tsv(tmp_path / "b.tsv", [("One.", "Uno."), ("Two.", "Dos."), ("Three.", "Tres."), ("Four.", "Cuatro.")])
    write_tsv(tmp_path / "held.tsv", [("stop it", "basta"), ("TWO", "DOS")])
    training = [
        TrainingSource(file="a.tsv", repeat=2),
        TrainingSource(file="b.tsv", skip_last=1),
    ]
    held = [HeldOutSource(file="held.tsv", limit=1), HeldOutSource(file="b.tsv", last=1)]
    mixture = read_mixture(training, held, [tmp_path])
    assert mixture.pairs == [("Go on.", "Sigue."), ("Yes", "Sí"), ("One.", "Uno."), ("Three.", "Tres.")]
    assert mixture.sizes == (2, 2)
    assert mixture.messages == [
        "a.tsv: 2 pairs × 2, 67% of the target words; 1 dropped because their source sentence is held out",
        "b.tsv: 2 pairs × 1, 33% of the target words; 1 dropped because their source sentence is held out",
    ]
    with pytest.raises(UserError, match=r"a\.tsv: no pairs are left"):
        read_mixture(training, [HeldOutSource(file="a.tsv")], [tmp_path])


def test_sentences_are_compared_without_case_and_marks() -> None:
    assert plain_form("¿Qué — “tal”, Tom_2?") == plain_form("QUÉ TAL TOM 2")


def test_a_repeat_is_a_number_of_copies_and_a_random_part() -> None:
    pairs = [(str(i), str(i)) for i in range(30)]
    mixture = Mixture(pairs, (10, 20), (2.4, 0.5))
    drawn = [Counter(mixture.draw(draw(seed)).tolist()) for seed in range(2)]
    for counts in drawn:
        assert sorted(counts[i] for i in range(10)) == [2] * 6 + [3] * 4
        assert sorted(counts[i] for i in range(10, 30)) == [0] * 10 + [1] * 10
        assert counts.total() == mixture.size == 34
    assert drawn[0] != drawn[1]
    assert Mixture.of(pairs).draw(draw()).tolist() == list(range(30))


def test_a_limit_is_spread_over_the_file_and_keeps_all_translations() -> None:
    pairs = [(str(i // 2), f"{i}") for i in range(20)]
    assert [source for source, _ in spread(pairs, 5)] == [str(i) for i in (0, 0, 2, 2, 4, 4, 6, 6, 8, 8)]
    assert spread(pairs, 0) == spread(pairs, 10) == pairs


# Trainings


def recipe_of(folder: Path, *settings: str) -> TranslationRecipe:
    return TranslationRecipe.read(override(read_toml(write_toy(folder, steps=6)), settings), where="toy")


def prepared(recipe: TranslationRecipe, data: Path, out: Path, *, resume: bool = False) -> tuple[Any, Sequence[str]]:
    out.mkdir(exist_ok=True)
    found = TranslationTask().prepare(recipe, [data], out, resume=resume)
    return found.work, found.messages


def batch_digest(work: Any, count: int = 60) -> str:
    found = hashlib.sha256()
    for _ in range(count):
        batch = work.batch(next(work.sampler))
        tensors = (batch.source.numpy(), batch.target_BT.numpy(), batch.labels_BT.numpy(), batch.indices)
        for array in tensors:
            found.update(str(array.shape).encode() + array.astype("int64").tobytes())
    return found.hexdigest()


BEFORE = {
    (): "ca017140ec3f240db621adbe65d7ae6ba54e39cb77a344f5a70ae76dd6c09970",
    ("data.informal_share=0.3", "data.longest_pair=5"): (
        "b70816d3c3551ed06d5cfbf995f2065362539aa0247f67b0fc3610b1cded8a9c"
    ),
}
"""Digests of the first 60 batches, computed before there were copies."""


@pytest.mark.parametrize("settings", BEFORE, ids=str)
def test_a_recipe_that_names_files_has_the_batches_it_always_had(tmp_path: Path, settings: tuple[str, ...]) -> None:
    work, told = prepared(recipe_of(tmp_path, *settings), tmp_path, tmp_path / "out")
    assert batch_digest(work) == BEFORE[settings]
    assert "training pairs, " in told[0]


TABLES = (
    'data.train=[{file="train.tsv", repeat=1.5}]',
    'data.valid=[{name="one", file="valid.tsv"}, {name="two", file="train.tsv", last=6, limit=5}]',
    "data.copies=3",
    "data.augment={join_two=0.3, upper=0.2, bpe_dropout=0.1}",
)


def test_epochs_go_through_the_copies_and_a_resumed_training_too(tmp_path: Path) -> None:
    recipe = recipe_of(tmp_path, *TABLES)
    work, told = prepared(recipe, tmp_path, tmp_path / "out")
    starts = [*np.load(tmp_path / "out/prepared/starts.npy").tolist(), len(work.sampler.source)]
    for epoch in range(5):
        copy = epoch % 3
        batches = [next(work.sampler)]
        batches += [next(work.sampler) for _ in range(len(work.sampler.batches) - 1)]
        assert sorted(np.concatenate(batches).tolist()) == list(range(starts[copy], starts[copy + 1]))
    state = work.sampler.state_dict()
    assert state.keys() == {"epoch", "next"}
    expected = batch_digest(work, 20)
    again, _ = prepared(recipe, tmp_path, tmp_path / "out", resume=True)
    again.sampler.load_state_dict(state)
    assert batch_digest(again, 20) == expected
    (tmp_path / "out/prepared/manifest.json").unlink()
    anew, _ = prepared(recipe, tmp_path, tmp_path / "out", resume=True)
    anew.sampler.load_state_dict(state)
    assert batch_digest(anew, 20) == expected, "even if the arrays have to be made again"
    assert "dropped because their source sentence is held out" in told[0]
    assert " in 3 copies, " in told[1]


def test_no_validation_sentence_is_trained_on(tmp_path: Path) -> None:
    recipe = recipe_of(tmp_path, *TABLES)
    held = held_pairs(recipe.data, [tmp_path])
    assert list(held) == ["one", "two"]
    assert len(held["two"]) == 5
    forbidden = {plain_form(source) for pairs in held.values() for source, _ in pairs}
    made = training_copies(recipe, [tmp_path])
    assert all(plain_form(source) not in forbidden for number in range(3) for source, _ in made.copy(number))


def test_it_is_told_how_much_of_the_end_is_plain(tmp_path: Path) -> None:
    work, _ = prepared(recipe_of(tmp_path, *TABLES), tmp_path, tmp_path / "out")
    counts = []
    for epoch in range(3):
        work.sampler.load_state_dict({"epoch": epoch, "next": 0})
        counts.append(len(work.sampler.batches))

    def told(steps: int) -> str:
        recipe = recipe_of(tmp_path, *TABLES, f"train.steps={steps}")
        messages = prepared(recipe, tmp_path, tmp_path / "out", resume=True)[1]
        return re.sub(r".* parameters, ", "", next(line for line in messages if "epochs" in line))

    work.sampler.load_state_dict({"epoch": 0, "next": 0})
    assert told(counts[0]) == f"{counts[0]} steps = 1.0 epochs, the last 0.0 of them on plain text"
    # Half of the plain copy, as far as its tokens tell: so few batches are not equally long.
    assert re.search(r"the last 0\.[1-7] of them on plain text", told(counts[0] + counts[1] + counts[2] // 2))


def test_figures_are_means_over_the_validation_sources(tmp_path: Path) -> None:
    work, _ = prepared(recipe_of(tmp_path, *TABLES), tmp_path, tmp_path / "out")
    figures = work.validate(work.model.eval())
    assert list(figures) == ["loss", "bleu", "loss.one", "loss.two", "bleu.one", "bleu.two"]
    assert figures["loss"] == (figures["loss.one"] + figures["loss.two"]) / 2
    assert figures["loss.one"] != figures["loss.two"]
    single, _ = prepared(recipe_of(tmp_path), tmp_path, tmp_path / "single")
    assert list(single.validate(single.model.eval())) == ["loss", "bleu"]
