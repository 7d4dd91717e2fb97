"""Routes: mazes and what is seen in them, equalities of what acts step by step, and a toy maze to walk through."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
import torch

import saccade
from mazes import MAZE, SIZES, TOY, write_maze
from saccade.arch.encoder_decoder import EncoderDecoderConfig
from saccade.data.episodes import EpisodeBatch, Episodes, episodes_of
from saccade.data.routes import as_known, read_routes, words_of
from saccade.errors import UserError
from saccade.models.acting import acted_features
from saccade.models.answering import arrays_of
from saccade.models.encdec import EncoderDecoder, build_encoder_decoder
from saccade.pipelines.actor import Actor
from saccade.runtime.acting import Acting
from saccade.runtime.open import SequenceRuntime
from saccade.sources.text import pad_sources
from saccade.tokens.vocabulary import TokensConfig, Vocabulary, train_vocabulary
from saccade.train.objective import EpisodeObjective
from saccade.worlds.maps import ACTIONS, CHANNELS, FAR, FLOORS, THINGS, WALLS, Maze, MazeWorld, Pose, read_maze
from tiny import ask

DATA = Path(os.environ.get("SACCADE_DATA", "data"))
TEXTS = ["turn left", "walk to the lamp", "turn around and take one step", "stay there"]


@pytest.fixture(scope="module")
def maze(tmp_path_factory: pytest.TempPathFactory) -> Maze:
    return write_maze(tmp_path_factory.mktemp("maze"))


# Mazes


def test_actions_turn_and_step(maze: Maze) -> None:
    assert maze.path(Pose(0, 0, 0), ["RIGHT", "FORWARD", "FORWARD", "RIGHT", "FORWARD"])[-1] == Pose(2, 1, 180)
    assert maze.after(Pose(0, 0, 0), "FORWARD") == Pose(0, 0, 0), "a wall"
    assert str(Pose(2, 1, 180)) == "2,1 facing south"
    for heading in (0, 90, 180, 270):
        assert maze.path(Pose(1, 1, heading), 4 * ["LEFT"])[-1] == Pose(1, 1, heading)


def test_what_is_seen_turns_with_who_looks(maze: Maze) -> None:
    for place in maze.things:
        views = [maze.seen(Pose(*place, heading)) for heading in (0, 90, 180, 270)]
        for turned, view in enumerate(views):
            assert view.shape == (4, FAR, CHANNELS)
            assert np.array_equal(view[:, 1:], np.roll(views[0], -turned, axis=0)[:, 1:])


def test_halls_are_seen_in_order_of_distance(maze: Maze) -> None:
    ahead = maze.seen(Pose(0, 0, 90))[0] > 0
    thing = 3 + len(FLOORS) + len(WALLS)
    assert ahead[0, thing + THINGS.index("lamp")], "here"
    assert ahead[1, 0] and ahead[1, 3 + FLOORS.index("blue")] and ahead[1, 3 + len(FLOORS) + WALLS.index("fish")]  # noqa: PT018
    assert ahead[1, 1:3].tolist() == [False, True], "at its end a hall goes off to the right"
    assert ahead[2, thing + THINGS.index("sofa")]
    assert not ahead[3:].any(), "behind the wall"


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('floor="blue"', 'floor="lava"', "floor = 'lava' is not one of blue"),
        ('item="lamp"', 'item="dragon"', "item = 'dragon' is not one of barstool"),
        ('node1="0,0" node2="1,0"', 'node1="0,0" node2="2,0"', "does not connect neighbouring nodes"),
        ('x="1" y="0"', 'x="one" y="0"', "invalid literal"),
        ("</map>", "", "not a map of SAIL"),
        ("<map", "<!DOCTYPE map><map", "no declarations"),
        ("<edge", "<hedge", "not a map of SAIL|a map without halls"),
    ],
)
def test_a_bad_map_is_one_clear_line(tmp_path: Path, old: str, new: str, told: str) -> None:
    path = tmp_path / "bad.xml"
    path.write_text(MAZE.replace(old, new, -1 if old == "<edge" else 1), encoding="utf-8")
    with pytest.raises(UserError, match=told) as raised:
        read_maze(path)
    assert "bad.xml" in str(raised.value)


def test_a_place_that_is_none_names_the_nearest(maze: Maze) -> None:
    with pytest.raises(UserError, match="9,9 is no place of the map Small; the nearest are 2,1"):
        maze.check(Pose(9, 9, 0))
    with pytest.raises(UserError, match="a heading is 0"):
        maze.check(Pose(0, 0, 45))


def test_routes_must_fit_their_map(maze: Maze, tmp_path: Path) -> None:
    row = {"id": "a", "sentences": [{"text": "go", "actions": ["FORWARD"], "states": [[0, 0, 90], [1, 0, 90]]}]}
    path = tmp_path / "routes.jsonl"
    path.write_text(json.dumps(row), encoding="utf-8")
    assert read_routes(path, maze)[0].legs[0].end == Pose(1, 0, 90)
    for old, new in (("[1, 0, 90]", "[7, 7, 90]"), ("FORWARD", "JUMP"), ("[0, 0, 90], ", ""), ('"text": "go", ', "")):
        path.write_text(json.dumps(row).replace(old, new), encoding="utf-8")
        with pytest.raises(UserError, match="line 1: not a route of SAIL"):
            read_routes(path, maze)


def test_words_are_plain_and_rare_ones_unknown() -> None:
    assert words_of("Turn left, at the pink-flowered hall!") == ["turn", "left", "at", "the", "pink-flowered", "hall"]
    assert as_known("Turn widdershins.", frozenset(["turn"])) == ("turn [unknown]", ["widdershins"])


@pytest.mark.data
def test_every_route_of_sail_is_walked_as_it_is_told() -> None:
    folder = DATA / "sail_navigation"
    if not folder.exists():
        pytest.skip("sail_navigation is not in $SACCADE_DATA")
    wrong = 0
    for name, count in (("grid", 874), ("jelly", 1289), ("l", 1070)):
        maze = read_maze(folder / f"map-{name}.xml")
        legs = [leg for route in read_routes(folder / f"sail_{name}.jsonl", maze) for leg in route.legs]
        assert len(legs) == count
        wrong += sum(maze.path(leg.start, leg.actions)[-1] != leg.end for leg in legs)
    assert wrong == 1, "one recorded turn of Jelly is no quarter turn"


# What acts step by step


def vocabulary() -> Vocabulary:
    return train_vocabulary(TokensConfig(kind="words"), [*TEXTS, " ".join(ACTIONS)])


def small_actor(seed: int = 0) -> EncoderDecoder:
    torch.manual_seed(seed)
    model = build_encoder_decoder(EncoderDecoderConfig.read(SIZES, where="toy"), len(vocabulary()))
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(2.0).add_(0.1 * torch.randn_like(weight))
    return model.eval()


def some_episodes(maze: Maze) -> Episodes:
    known, rows = (
        vocabulary(),
        [(Pose(0, 0, 90), ["FORWARD", "RIGHT"]), (Pose(2, 1, 0), ["FORWARD"] * 4), (Pose(1, 1, 0), [])],
    )
    views = np.stack([maze.seen(pose) for start, actions in rows for pose in maze.path(start, actions)])
    commands, actions = known.read(TEXTS[:3]), [known.encode([" ".join(actions)])[0] for _, actions in rows]
    return episodes_of(commands, actions, views, lambda kept: kept, known.marks)


def features(model: EncoderDecoder, batch: EpisodeBatch) -> torch.Tensor:
    pictures = batch.views_BTHWC[batch.real_BT].float() / 255
    return acted_features(model, (batch.source_BS, batch.source_mask_BS), pictures, batch.real_BT, batch.target_BT)


def test_the_runtime_acts_as_pytorch_does(maze: Maze) -> None:
    model, episodes = small_actor(), some_episodes(maze)
    batch = episodes.batch(np.arange(3))
    with torch.inference_mode():
        expected_BTV = model.decoder.logits(features(model, batch)).numpy()
    acting = Acting(SequenceRuntime(model.config, arrays_of(model), "exact"))
    views = batch.views_BTHWC.numpy()
    state = acting.start(*pad_sources([episodes.commands[i] for i in range(3)], episodes.marks), views[:, 0])
    for t in range(batch.target_BT.shape[1]):
        state = acting.see(views[:, t], state) if t else state
        logits_BV, state = acting.step(batch.target_BT[:, t].numpy(), state)
        real_B = batch.real_BT[:, t].numpy()
        np.testing.assert_allclose(logits_BV[real_B], expected_BTV[:, t][real_B], atol=2e-4, rtol=1e-4)


def test_a_batch_of_episodes_is_each_alone(maze: Maze) -> None:
    model, episodes = small_actor(), some_episodes(maze)
    objective = EpisodeObjective()
    with torch.inference_mode():
        together = objective(model, episodes.batch(np.arange(3)))["loss"]
        alone = [objective(model, episodes.batch(np.array([i])))["loss"] for i in range(3)]
        rows = [objective(model, episodes.batch(np.arange(3)).rows(np.array([i])))["loss"] for i in range(3)]
    assert together[1] == sum(count for _, count in alone) == 3 + 5 + 1
    assert float(together[0]) == pytest.approx(sum(float(loss) for loss, _ in alone), rel=1e-4)
    assert float(together[0]) == pytest.approx(sum(float(loss) for loss, _ in rows), rel=1e-4)


def test_what_was_seen_before_is_remembered_and_what_is_seen_now_counts(maze: Maze) -> None:
    model, episodes = small_actor(), some_episodes(maze)
    batch = episodes.batch(np.array([1]))
    with torch.inference_mode():
        before = features(model, batch)
        batch.views_BTHWC[0, 2] = 255 - batch.views_BTHWC[0, 2]
        after = features(model, batch)
    assert torch.equal(before[:, :2], after[:, :2]), "the future is not seen"
    assert not torch.allclose(before[:, 2], after[:, 2])
    assert not torch.allclose(before[:, 3], after[:, 3])


def test_worlds_side_by_side_are_as_each_alone(maze: Maze) -> None:
    model = small_actor()
    actor = Actor(SequenceRuntime(model.config, arrays_of(model), "exact"), vocabulary(), ACTIONS)
    starts = [Pose(0, 0, 90), Pose(2, 1, 0), Pose(1, 1, 180), Pose(1, 0, 270)]

    def act(rows: range) -> list[tuple[list[str], bool]]:
        worlds = [MazeWorld(maze, starts[row], TEXTS[row]) for row in rows]
        episodes = actor.act(worlds, [world.reset(0) for world in worlds], 7, look=True)
        for episode, world in zip(episodes, worlds, strict=True):
            assert maze.path(world.start, episode.actions)[-1] == world.pose
            looks = actor.looks_of(episode)
            for memory in ("command", "world"):
                weights_TS = looks.alignment(memory=memory).weights_TS
                assert weights_TS.shape[0] == len(episode.choices)
                np.testing.assert_allclose(weights_TS.sum(axis=1), 1, atol=1e-5)
        return [(episode.actions, episode.ended) for episode in episodes]

    assert act(range(4)) == [act(range(row, row + 1))[0] for row in range(4)]


# A toy maze


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    room = tmp_path_factory.mktemp("routes")
    for name in ("small", "other"):
        write_maze(room, name)
    (room / "toy.toml").write_text(TOY, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("saccade.train.log.draw_curve", lambda entries, path: None)
        said = ask("train", room / "toy.toml", "--data", room, "--out", room / "toy")
    assert said.code == 0, said.err
    assert "maps to train on: small; 22 routes, 2 held out" in said.err
    single, paragraph, chance = said.lines
    assert single.startswith("single sentences ")
    assert paragraph.startswith("paragraphs ")
    assert float(single.split()[2]) > 85 > float(chance.split("sentence) ")[1].split()[0])
    return room / "toy"


def test_directions_are_walked_and_drawn(toy: Path, tmp_path: Path) -> None:
    place = ["--model", toy, "--map", toy.parent / "map-small.xml", "--start", "0,0,180"]
    said = ask("walk", "Turn left. Take one step!", *place, "--draw", tmp_path / "path.png")
    assert said.code == 0, said.err
    assert said.lines == ["LEFT FORWARD → 1,0 facing east"]
    assert (tmp_path / "path.png").read_bytes()[:4] == b"\x89PNG"
    (row,) = map(json.loads, ask("walk", "turn left", *place, "--format", "json").lines)
    assert row["path"] == [[0, 0, 180], [0, 0, 90]]
    assert row["sentences"] == [{"read": "turn left", "actions": ["LEFT"]}]


def test_unknown_words_are_named_and_looks_are_drawn(toy: Path, tmp_path: Path) -> None:
    place = ["--model", toy, "--map", toy.parent / "map-small.xml", "--start", "0,0,180"]
    said = ask("walk", "turn widdershins left", *place, "--look", tmp_path / "look.png")
    assert said.code == 0
    assert "unknown words, read as one: 'widdershins'" in said.err
    assert (tmp_path / "look.png").read_bytes()[:4] == b"\x89PNG"


def test_evaluating_gives_what_training_gave_and_takes_files(toy: Path) -> None:
    lines = ask("evaluate", toy, "--data", toy.parent).lines
    assert len(lines) == 3
    assert ask("evaluate", toy, toy.parent / "map-other.xml", toy.parent / "sail_other.jsonl").lines == lines


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ([], "walks through mazes: add --map FILE --start X,Y,HEADING"),
        (["--map", "nowhere.xml", "--start", "0,0,0"], "nowhere.xml: no such map"),
        (["--map", "MAP", "--start", "0,0"], "--start is X,Y,HEADING"),
        (["--map", "MAP", "--start", "5,5,0"], "5,5 is no place of the map Small"),
        (["--map", "MAP", "--start", "0,0,7"], "a heading is 0"),
        (["--map", "MAP", "--start", "0,0,0", "--draw", "path.svg"], "a path is drawn into a .png"),
    ],
)
def test_wrong_use_is_one_line(toy: Path, options: list[str], told: str) -> None:
    words = [str(toy.parent / "map-small.xml") if word == "MAP" else word for word in options]
    said = ask("walk", "turn left", "--model", toy, *words)
    assert said.code in (1, 2)
    assert told in said.err
    assert len(said.err.splitlines()) == 1


def test_a_model_that_cannot_act_is_refused(toy: Path) -> None:
    for key, told in (("tokens", "height, width, channels"), ("kind", "a recurrent decoder")):
        change = 'model.encoders.world.front={kind="patches",height=2,width=2,channels=3,patch=1}'
        change = change if key == "tokens" else 'model.decoder={kind="transformer",layers=1,width=16,heads=2}'
        out = toy.parent / f"refused-{key}"
        said = ask("train", toy.parent / "toy.toml", "--data", toy.parent, "--out", out, "--set", change)
        assert said.code == 1
        assert told in said.err


def test_the_loaded_walker_answers_in_python(toy: Path) -> None:
    walker = saccade.load(toy)
    with pytest.raises(UserError, match="walks through mazes"):
        walker("turn left")
    walker.maze, walker.start = read_maze(toy.parent / "map-small.xml"), Pose(0, 0, 0)
    assert walker("turn right").end == Pose(0, 0, 90)
    assert [one.end for one in walker(["turn right", "turn left"])] == [Pose(0, 0, 90), Pose(0, 0, 270)]
