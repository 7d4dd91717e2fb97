"""A small made-up maze, routes through it, and a tiny training on them."""

import json
from pathlib import Path

from saccade.worlds.maps import Maze, Pose, read_maze

MAZE = """<?xml version="1.0"?>
<map name="Small">
	<node x="0" y="0" item="lamp" /><node x="1" y="0" item="" /><node x="2" y="0" item="sofa" />
	<node x="0" y="1" item="" /><node x="1" y="1" item="easel" /><node x="2" y="1" item="" />
	<edge node1="0,0" node2="1,0" wall="fish" floor="blue" />
	<edge node1="1,0" node2="2,0" wall="fish" floor="blue" />
	<edge node1="0,1" node2="1,1" wall="tower" floor="grass" />
	<edge node1="0,0" node2="0,1" wall="butterfly" floor="wood" />
	<edge node1="1,0" node2="1,1" wall="fish" floor="yellow" />
	<edge node1="2,0" node2="2,1" wall="fish" floor="brick" />
</map>
"""
LEGS = {
    "turn left": ["LEFT"],
    "turn right": ["RIGHT"],
    "turn around": ["LEFT", "LEFT"],
    "take one step": ["FORWARD"],
    "stay there": [],
}


def write_maze(folder: Path, name: str = "small") -> Maze:
    """The map and routes on it, as SAIL has them."""
    path = folder / f"map-{name}.xml"
    path.write_text(MAZE, encoding="utf-8")
    maze = read_maze(path)
    rows = []
    for place in maze.things:
        for heading in (0, 90, 180, 270):
            pose, sentences = Pose(*place, heading), []
            steps = dict(LEGS, **{"walk to the wall": _to_the_wall(maze, pose)})
            for text, actions in steps.items():
                states = [[one.x, one.y, one.heading] for one in maze.path(pose, actions)]
                sentences.append({"text": text.capitalize() + ".", "actions": actions, "states": states})
            rows.append({"id": f"{name}-{len(rows)}", "map": name, "sentences": sentences})
    (folder / f"sail_{name}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return maze


def _to_the_wall(maze: Maze, pose: Pose) -> list[str]:
    actions: list[str] = []
    while maze.after(pose, "FORWARD") != pose:
        pose = maze.after(pose, "FORWARD")
        actions.append("FORWARD")
    return actions


SIZES = {
    "tie": "none",
    "encoders": {
        "command": {"kind": "recurrent", "width": 32, "embed": 24, "dropout": 0.0},
        "world": {
            "kind": "transformer",
            "layers": 1,
            "width": 16,
            "heads": 2,
            "feedforward": 32,
            "dropout": 0.0,
            "front": {"kind": "patches", "height": 4, "width": 8, "channels": 20, "patch": 1},
        },
    },
    "decoder": {"kind": "recurrent", "width": 32, "embed": 16, "dropout": 0.0},
}
TOY = """
task = "routes"
name = "toy"
[data]
folder = "."
maps = ["small", "other"]
test_map = "other"
held_out_share = 0.1
min_count = 1
[model]
tie = "none"
[model.encoders.command]
kind = "recurrent"
width = 32
embed = 24
dropout = 0.0
[model.encoders.world]
kind = "transformer"
layers = 1
width = 16
heads = 2
feedforward = 32
dropout = 0.0
front = {kind = "patches", height = 4, width = 8, channels = 20, patch = 1}
[model.decoder]
kind = "recurrent"
width = 32
embed = 16
dropout = 0.0
[train]
steps = 180
batch_tokens = 128
warmup = 10
smoothing = 0.0
validate_every = 90
select_by = "success"
adam = {rate = 1e-2}
"""
