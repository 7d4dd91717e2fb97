"""Acting: BabyAI's worlds and demonstrations in them, equalities of what acts in pictures, the world of the docs."""

import json
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

import saccade
from agents import documented_world, untrained, write_agent
from hostile_acting import act_faults, walk_faults
from saccade.axes import Grid
from saccade.data.demonstrations import commands_of, demonstrations, episodes_from
from saccade.errors import UserError
from saccade.evaluate.pointing import pointing
from saccade.models.acting import acted_features
from saccade.models.answering import arrays_of
from saccade.pipelines.actor import Actor
from saccade.pipelines.agent import Agent
from saccade.pipelines.table import TASKS
from saccade.runtime.acting import Acting
from saccade.runtime.open import SequenceRuntime
from saccade.sources.text import pad_sources
from saccade.worlds.babyai import ACTIONS, LEVELS, VIEW, BabyAI, unpack
from saccade.worlds.demonstrations import Straying, demonstrate
from saccade.worlds.opening import add_world, maker_of
from tiny import ask, insist_one_line

pytest.importorskip("minigrid")
CALM = Straying(share=0.0)


def strayed(level: str, seed: int, steps: int) -> Iterator[BabyAI]:
    """A world after every one of some random actions."""
    world, random = BabyAI(level), np.random.default_rng(seed)
    world.reset(seed)
    for _ in range(steps):
        yield world
        if world.step(int(random.integers(3))).over:
            return


# Worlds


@pytest.mark.parametrize("level", LEVELS)
def test_what_is_seen_is_what_minigrid_draws(level: str) -> None:
    world, random = BabyAI(level), np.random.default_rng(1)
    view = world.reset(3)
    assert view.picture_HWC.shape == VIEW
    for _ in range(20):
        assert np.array_equal(view.picture_HWC, world.env.get_pov_render(8))
        effect = world.step(int(random.integers(len(ACTIONS))))
        view = effect.view
        if effect.over:
            break


def test_a_seed_is_a_world() -> None:
    one, other = BabyAI(LEVELS[1]), BabyAI(LEVELS[1])
    assert one.reset(5).command == other.reset(5).command
    assert np.array_equal(one.whole(), other.whole())
    one.reset(6)
    assert not np.array_equal(one.whole(), other.whole())


def test_goals_are_the_fields_of_what_is_named() -> None:
    found = 0
    for seed in range(4):  # in these worlds there is one thing only
        for world in strayed(LEVELS[0], seed, 8):
            kinds_YX = world.env.gen_obs()["image"][..., 0].T
            things = {(row, column) for row, column in np.argwhere((kinds_YX >= 5) & (kinds_YX <= 7)).tolist()}
            assert set(world.goals()) == things
            found += bool(things)
    assert found > 5


@pytest.mark.parametrize("level", LEVELS[:3])
def test_good_advice_leads_to_the_goal_from_anywhere(level: str) -> None:
    for seed in range(3):
        world, random, reward = BabyAI(level), np.random.default_rng(seed), 0.0
        world.reset(seed)
        for step in range(40):
            advice = world.advise()
            assert advice is not None
            effect = world.step(int(random.integers(3)) if step < 5 else advice)
            reward += effect.reward
            if effect.over:
                break
        assert reward > 0


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("os:system", "no world 'os:system'; these are known: BabyAI-GoToObj-v0"),
        ("BabyAI-GoToObk-v0", "minigrid has no level BabyAI-GoToObk-v0; did you mean BabyAI-GoToObj-v0"),
        ("MiniGrid-Empty-5x5-v0", "its missions are not BabyAI's"),
    ],
)
def test_a_world_that_is_none_is_named(name: str, told: str) -> None:
    with pytest.raises(UserError, match=told):
        maker_of(name)()


def test_without_minigrid_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "minigrid", None)
    with pytest.raises(UserError, match=r"pip install 'saccade\[worlds\]'"):
        BabyAI(LEVELS[0])


# Demonstrations


def test_demonstrations_do_not_depend_on_who_makes_them(tmp_path: Path) -> None:
    make = partial(demonstrate, maker_of(LEVELS[1]), Straying(1.0, 0.3), 30)
    told: list[tuple[int, int]] = []
    made = demonstrations(tmp_path / "a", [make], [range(6)], 1, lambda *some: told.append(some), resume=False)
    assert told == [(6, 6)]
    alone = [one for seed in range(6) for one in make(range(seed, seed + 1))]
    assert np.array_equal(made["advised"], np.concatenate([one.advised_N for one in alone]))
    assert np.array_equal(made["views"], np.concatenate([one.views_NX for one in alone]))
    assert np.any(made["advised"] != made["done"]), "some strayed"
    broken = partial(demonstrate, maker_of(LEVELS[1]), CALM, 0)
    again = demonstrations(tmp_path / "a", [broken], [range(6)], 1, lambda *_: None, resume=True)
    assert all(np.array_equal(again[name], made[name]) for name in made), "they are kept"


def test_who_does_not_stray_does_as_advised() -> None:
    (one,) = demonstrate(maker_of(LEVELS[2]), CALM, 30, [4])
    assert np.array_equal(one.advised_N, one.done_N)
    assert len(one.views_NX) == len(one.done_N)
    world = BabyAI(LEVELS[2])
    assert world.reset(4).command == one.command
    effects = [world.step(int(action)) for action in one.done_N]
    assert effects[-1].over
    assert effects[-1].reward > 0


def test_an_episode_holds_what_was_done_and_what_was_advised(tmp_path: Path) -> None:
    _, vocabulary = untrained()
    make = partial(demonstrate, maker_of(LEVELS[0]), Straying(1.0, 0.5), 12)
    made = demonstrations(tmp_path / "a", [make], [range(5)], 1, lambda *_: None, resume=False)
    episodes = episodes_from(made, vocabulary, ACTIONS, unpack, blind=False)
    batch = episodes.batch(np.arange(5))
    ids = [vocabulary.encode([action])[0][0] for action in ACTIONS]
    first = 0
    for row, length in enumerate(made["lengths"]):
        part = slice(first, first + length)
        assert batch.labels_BT[row, :length].tolist() == [ids[action] for action in made["advised"][part]]
        assert batch.target_BT[row, 1:length].tolist() == [ids[action] for action in made["done"][part][:-1]]
        assert np.array_equal(batch.views_BTHWC[row, :length].numpy(), unpack(made["views"][part]))
        assert batch.real_BT[row].sum() == length
        assert commands_of(made)[made["command"][row]] == vocabulary.decode(episodes.commands[row])
        first += length


# Equalities


def small_agent() -> Agent:
    model, vocabulary = untrained()
    runtime = SequenceRuntime(model.config, arrays_of(model), "exact")
    return Agent(Actor(runtime, vocabulary, ACTIONS), [word for word in vocabulary.words or () if word not in ACTIONS])


def test_the_runtime_acts_as_pytorch_does(tmp_path: Path) -> None:
    model, vocabulary = untrained()
    make = partial(demonstrate, maker_of(LEVELS[0]), Straying(1.0, 0.4), 9)
    made = demonstrations(tmp_path / "a", [make], [range(3)], 1, lambda *_: None, resume=False)
    episodes = episodes_from(made, vocabulary, ACTIONS, unpack, blind=False)
    batch = episodes.batch(np.arange(3))
    with torch.inference_mode():
        pictures = batch.views_BTHWC[batch.real_BT].float() / 255
        told = (batch.source_BS, batch.source_mask_BS)
        expected_BTV = model.decoder.logits(acted_features(model, told, pictures, batch.real_BT, batch.target_BT))
    acting, views = Acting(SequenceRuntime(model.config, arrays_of(model), "exact")), batch.views_BTHWC.numpy()
    state = acting.start(*pad_sources([episodes.commands[i] for i in range(3)], episodes.marks), views[:, 0])
    for t in range(batch.target_BT.shape[1]):
        state = acting.see(views[:, t], state) if t else state
        logits_BV, state = acting.step(batch.target_BT[:, t].numpy(), state)
        real_B = batch.real_BT[:, t].numpy()
        np.testing.assert_allclose(logits_BV[real_B], expected_BTV.numpy()[:, t][real_B], atol=2e-4, rtol=1e-4)


def test_worlds_side_by_side_are_as_each_alone_and_watching_changes_nothing() -> None:
    agent, seeds = small_agent(), range(4)
    together = agent.play_seeds(maker_of(LEVELS[1]), seeds, longest=12)
    for run in together:
        (alone,) = agent.play([BabyAI(LEVELS[1])], [run.seed], longest=12, look=True)
        assert alone.episode.actions == run.episode.actions
        assert alone.reached == run.reached
        film = agent.film(alone)
        assert len(film.seen) == len(film.actions) == len(film.whole) == len(film.word_weights)
        for words, fields in zip(film.word_weights, film.field_weights, strict=True):
            assert words.shape == (len(film.words),)
            assert fields.shape == (7, 7)
            assert float(words.sum()) == pytest.approx(1, abs=1e-5)
            assert float(fields.sum()) == pytest.approx(1, abs=1e-5)


def test_a_picture_is_answered_as_the_world_it_is_of(tmp_path: Path) -> None:
    agent, world = small_agent(), BabyAI(LEVELS[0])
    view = world.reset(2)
    path = tmp_path / "world.png"
    Image.fromarray(view.picture_HWC).save(path)
    answer = agent((path, view.command), best=6)
    (run,) = agent.play([world], [2], longest=1)
    assert [answer.text] == run.episode.actions
    assert sorted(one.text for one in answer.best) == sorted(ACTIONS)
    assert sum(one.score for one in answer.best) == pytest.approx(1, abs=1e-5)
    assert answer.looks.alignment(memory="world").weights_TS.shape == (1, 49)


def test_who_is_blind_does_the_same_whatever_is_there() -> None:
    agent = small_agent()
    random = np.random.default_rng(0)
    pictures = [random.integers(0, 256, VIEW, dtype=np.uint8) for _ in range(2)]
    seen = [agent((picture, "go to the red ball")).score for picture in pictures]
    agent.actor.blind = True
    unseen = [agent((picture, "go to the red ball")).score for picture in pictures]
    assert seen[0] != seen[1]
    assert unseen[0] == unseen[1]


def test_pointing_counts_looks_while_the_goal_is_seen() -> None:
    weights = [np.eye(4)[place] for place in (0, 1, 3, 2)]
    goals = [[(0, 0)], [(0, 0), (0, 1)], [(0, 0)], []]
    found, chance = pointing("x", goals, weights, Grid(height=2, width=2))
    assert found.value == pytest.approx(100 * 2 / 3)
    assert chance.value == pytest.approx(100 * (1 / 4 + 2 / 4 + 1 / 4) / 3)
    assert pointing("x", [[]], weights[:1], Grid(height=2, width=2)) == []


# The world of the docs


@pytest.fixture(scope="module")
def corridor(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any], str]:
    """The program of the docs, run as it stands there."""
    folder = tmp_path_factory.mktemp("acting")
    names, program = documented_world()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("saccade.train.log.draw_curve", lambda entries, path: None)
        patch.chdir(folder)
        printed: list[str] = []
        exec(program, names | {"print": lambda *some: printed.append(" ".join(map(str, some)))}, names)
    return folder / "corridor", names, printed[0]


def test_the_documented_world_is_learnt_and_acted_in(corridor: tuple[Path, dict[str, Any], str]) -> None:
    path, names, printed = corridor
    assert printed.startswith("go ")
    assert printed.endswith("True")
    success, chance = (line.split() for line in ask("evaluate", path).lines[:2])
    assert float(success[2]) > 95
    assert float(chance[4]) < 70
    (run,) = saccade.load(path).play([names["Corridor"]()], [11])
    world = names["Corridor"]()
    world.reset(11)
    assert run.episode.actions == [world.actions[world.advise()]] * len(run.episode.actions)


def test_a_trained_agent_learns_on(corridor: tuple[Path, dict[str, Any], str], tmp_path: Path) -> None:
    path, names, _ = corridor
    settings = {
        "learner": str(path),
        "data": {"levels": [{"name": "corridor", "worlds": 40}], "processes": 1, "test": 40, "valid": 10},
        "model.encoders.world.front": {"kind": "patches", "height": 8, "width": 56, "channels": 3, "patch": 8},
        "model.encoders.world.width": 32,
        "model.decoder.width": 64,
        "train": {"steps": 2, "batch_tokens": 64, "validate_every": 1, "warmup": 0, "adam": {"rate": 1e-6}},
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("saccade.train.log.draw_curve", lambda entries, path: None)
        agent = saccade.train("agent", settings=settings, out=tmp_path / "more", quiet=True)
    (run,) = agent.play([names["Corridor"]()], [5])
    assert run.reached, "it began with what was learnt"
    with pytest.raises(UserError, match="its sizes are not those of the recipe"):
        saccade.train("agent", settings=settings | {"model.decoder.width": 48}, out=tmp_path / "other", quiet=True)


def test_an_episode_is_drawn_and_told(corridor: tuple[Path, dict[str, Any], str], tmp_path: Path) -> None:
    path, _, _ = corridor
    for name in ("run.png", "run.gif"):
        said = ask("act", "--world", "corridor", "--seed", "3", "--model", path, "--look", tmp_path / name)
        assert said.code == 0, said.err
        assert said.lines[0].startswith("go ")
        assert "→ reached after" in said.lines[0]
        with Image.open(tmp_path / name) as drawn:
            assert drawn.format == name[-3:].upper()
            actions = said.lines[0].partition(": ")[2].partition(" →")[0].split()
            assert name == "run.png" or getattr(drawn, "n_frames", 1) == len(actions)
    rows = [
        json.loads(line)
        for line in ask("act", "--world", "corridor", "--episodes", "3", "--model", path, "--format", "json").lines
    ]
    assert [row["seed"] for row in rows] == [0, 1, 2]
    assert all(row["reached"] for row in rows)
    lines = ask("act", "--world", "corridor", "--episodes", "40", "--model", path).lines
    assert lines[0].startswith("success, corridor 100.00")
    assert lines[1].startswith("success, corridor, at random")


# The command


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_agent(tmp_path_factory.mktemp("agent") / "untrained")


def test_a_picture_and_a_command_give_the_next_action(model: Path, tmp_path: Path) -> None:
    view = BabyAI(LEVELS[0]).reset(1)
    path = tmp_path / "world.png"
    Image.fromarray(view.picture_HWC).resize((224, 224), Image.Resampling.NEAREST).save(path)
    said = ask("act", path, "Go to the red bal!", "--model", model, "--best", "6", "--look", tmp_path / "where.png")
    assert said.code == 0
    assert "read 'bal' as 'ball'" in said.err
    assert sorted(line.split("\t")[1] for line in said.lines) == sorted(ACTIONS)
    assert (tmp_path / "where.png").read_bytes()[:4] == b"\x89PNG"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "give a picture and a command"),
        (["PICTURE"], "a picture and a command are expected"),
        (["PICTURE", "go to the ball", "--seed", "3"], "--seed and --episodes are for worlds"),
        (["PICTURE", "go to the ball", "--world", LEVELS[0]], "give a picture and a command"),
        (["--world", "GoToObj"], "no world 'GoToObj'"),
        (["--world", LEVELS[0], "--seed", "-1"], "--seed must be at least 0"),
        (["--world", LEVELS[0], "--episodes", "0"], "--episodes must be between 1"),
        (["--world", LEVELS[0], "--episodes", "2", "--look", "run.gif"], "can hold one episode"),
        (["--world", LEVELS[0], "--look", "run.svg"], "drawn as .png, a filmstrip, or as .gif"),
        (["nowhere.png", "go to the ball"], "nowhere.png"),
        (["PICTURE", "please fetch the ball"], "'please', 'fetch': not among the words"),
        (["PICTURE", "..."], "there is no command in"),
    ],
)
def test_wrong_use_is_one_line(model: Path, tmp_path: Path, arguments: list[str], told: str) -> None:
    picture = tmp_path / "world.png"
    Image.new("RGB", (56, 56)).save(picture)
    said = ask("act", *(str(picture) if word == "PICTURE" else word for word in arguments), "--model", model)
    assert said.code in (1, 2)
    assert told in said.err
    assert len(said.err.splitlines()) == 1


@pytest.mark.skipif(bool(TASKS["acting"].model), reason="an agent is bundled")
def test_without_a_bundled_agent_one_line_says_what_to_do() -> None:
    insist_one_line(ask("act", "--world", LEVELS[0]), 2, ["no agent is bundled: train one"])


def test_a_world_with_other_actions_or_pictures_is_refused(corridor: tuple[Path, dict[str, Any], str]) -> None:
    agent, corridor_class = small_agent(), corridor[1]["Corridor"]
    with pytest.raises(UserError, match="this world's actions are left, right; the model was trained with left, right"):
        agent.play([corridor_class()], [1])
    wide = type("Wide", (corridor_class,), {"actions": ACTIONS})
    with pytest.raises(UserError, match=r"this world's pictures are \(8, 56, 3\), not \(56, 56, 3\)"):
        agent.play([wide()], [1])
    with pytest.raises(UserError, match="is the name of a level"):
        add_world(LEVELS[0], corridor_class)


def test_hostile_commands_and_pictures_are_answered_or_refused_in_a_line() -> None:
    for ends, faults in (walk_faults(300), act_faults(120, small_agent())):
        assert faults == []
        assert min(ends["answered"], ends["refused"]) > 0
