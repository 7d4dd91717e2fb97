"""BabyAI's worlds of rooms and things (Chevalier-Boisvert et al. 2019), from the package minigrid: who acts sees seven
by seven fields ahead, as a picture, and is told what to do in a sentence. The package's bot knows what to do."""

import contextlib
import io
import os
import re
from functools import lru_cache
from typing import Any

import numpy as np

from saccade.errors import UserError, did_you_mean
from saccade.worlds.contract import Effect, View

LEVELS = ("BabyAI-GoToObj-v0", "BabyAI-GoToLocal-v0", "BabyAI-PickupLoc-v0", "BabyAI-GoTo-v0")
"""Those that the bundled agent is trained in, from easy to hard."""
ACTIONS = ("left", "right", "forward", "pickup", "drop", "toggle")
"""In minigrid's order; to say "done" ends nothing in these levels, so nobody says it."""
FIELDS, TILE = 7, 8
"""Fields of what is seen, down and across, and pixels of one of them."""
VIEW = (FIELDS * TILE, FIELDS * TILE, 3)
WHOLE = 280
"""Pixels of the longer side of a picture of the whole world, about."""
KINDS, COLOURS, STATES = 11, 6, 3
"""Kinds of things, their colours, and the states of doors: a field is one byte, which says all three."""
LEVEL = re.compile(r"(BabyAI|MiniGrid)-[A-Za-z0-9]+(-[A-Za-z0-9]+)*-v\d+")


class BabyAI:
    """A level: every seed is another world."""

    actions = ACTIONS
    ends = True

    def __init__(self, level: str) -> None:
        self.level, self.env = level, _make(level)
        self.bot: Any = None
        self.last: int | None = None
        """What was done last."""

    def reset(self, seed: int) -> View:
        with contextlib.redirect_stdout(io.StringIO()):  # it prints which drafts of the world it rejects
            seen, _ = self.env.reset(seed=seed)
        self.bot, self.last = None, None
        return self._view(seen)

    def step(self, action: int) -> Effect:
        seen, reward, done, cut, _ = self.env.step(action)
        self.last = action
        return Effect(self._view(seen), float(reward), bool(done or cut))

    @property
    def longest(self) -> int:
        """Actions after which the world ends anyway."""
        return int(self.env.max_steps)

    def advise(self) -> int | None:
        """What BabyAI's bot would do: it knows only what was seen so far. It must be asked before every action, or
        never."""
        from minigrid.utils.baby_ai_bot import BabyAIBot

        if self.bot is None:
            self.bot = BabyAIBot(self.env)  # type: ignore[no-untyped-call]
        try:
            advice = int(self.bot.replan(self.last))
        except Exception:  # asserts, IndexError and errors of its own: it is lost after some odd actions
            return None
        return advice if advice < len(ACTIONS) else None

    def goals(self) -> list[tuple[int, int]]:
        """The fields in view with what the mission is about; what is carried is not there any more."""
        wanted = {tuple(int(part) for part in place) for place in self._wanted()}
        right, ahead = self.env.right_vec, self.env.dir_vec
        corner = self.env.agent_pos + ahead * (FIELDS - 1) - right * (FIELDS // 2)
        seen = self.env.gen_obs()["image"]
        return [
            (row, column)
            for row in range(FIELDS)
            for column in range(FIELDS)
            if seen[column, row, 0] and tuple((corner - ahead * row + right * column).tolist()) in wanted
        ]

    def _wanted(self) -> list[Any]:
        described = getattr(self.env.instrs, "desc", None)
        if described is None:
            return []
        things = zip(described.obj_set, described.obj_poss, strict=True)
        return [place for thing, place in things if thing is not self.env.carrying]

    def whole(self) -> np.ndarray:
        tile = WHOLE // max(self.env.width, self.env.height)
        pixels: np.ndarray = self.env.get_full_render(True, max(TILE, tile))
        return pixels

    def unpack(self, packed_N: np.ndarray) -> np.ndarray:
        return unpack(packed_N)

    def _view(self, seen: dict[str, Any]) -> View:
        packed = pack(seen["image"])
        return View(str(seen["mission"]), unpack(packed[None])[0], packed)


def pack(image_XYC: np.ndarray) -> np.ndarray:
    """Minigrid's codes of what is seen, a byte for each field, row by row."""
    kind, colour, state = (image_XYC[..., part].T.astype(np.int64) for part in range(3))
    return ((kind * COLOURS + colour) * STATES + np.minimum(state, STATES - 1)).astype(np.uint8)


def unpack(packed_NHW: np.ndarray) -> np.ndarray:
    """What minigrid itself would draw of these views: [N, 56, 56, 3]. The one who acts stands below, in the middle."""
    plain_KHWC, agent_KHWC = _tiles()
    tiles = plain_KHWC[packed_NHW]
    tiles[:, -1, FIELDS // 2] = agent_KHWC[packed_NHW[:, -1, FIELDS // 2]]
    return np.ascontiguousarray(tiles.transpose(0, 1, 3, 2, 4, 5)).reshape(len(packed_NHW), *VIEW)


@lru_cache(maxsize=1)
def _tiles() -> tuple[np.ndarray, np.ndarray]:
    """Pictures of all fields, without and with somebody in them."""
    _need()
    from minigrid.core.constants import IDX_TO_OBJECT
    from minigrid.core.grid import Grid
    from minigrid.core.world_object import WorldObj

    count = KINDS * COLOURS * STATES
    plain, agent = (np.zeros((count, TILE, TILE, 3), dtype=np.uint8) for _ in range(2))
    for code in range(count):
        kind, colour, state = code // STATES // COLOURS, code // STATES % COLOURS, code % STATES
        if kind >= len(IDX_TO_OBJECT) or IDX_TO_OBJECT[kind] == "agent":
            continue
        thing = WorldObj.decode(kind, colour, state)
        seen = IDX_TO_OBJECT[kind] != "unseen"
        plain[code] = Grid.render_tile(thing, highlight=seen, tile_size=TILE)
        agent[code] = Grid.render_tile(thing, agent_dir=3, highlight=seen, tile_size=TILE)
    return plain, agent


def _need() -> None:
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    try:
        import minigrid  # noqa: F401
    except ModuleNotFoundError as error:
        raise UserError(
            f"BabyAI's worlds need {error.name}, which is not installed: pip install 'saccade[worlds]', in a clone "
            "'.[worlds]'; without it an agent still tells its next action for a picture: saccade act world.png \"…\""
        ) from None


def _make(level: str) -> Any:
    # Gymnasium would import any module that a name begins with.
    if not LEVEL.fullmatch(level):
        raise UserError(f"{level[:60]!r} is no level; the agent knows {', '.join(LEVELS)}")
    _need()
    import gymnasium
    from minigrid.envs.babyai.core.roomgrid_level import RoomGridLevel

    known = [name for name in gymnasium.registry if LEVEL.fullmatch(name)]
    if level not in known:
        raise UserError(f"minigrid has no level {level}{did_you_mean(level, known)}")
    env = gymnasium.make(level).unwrapped
    if not isinstance(env, RoomGridLevel):
        raise UserError(f"{level}: its missions are not BabyAI's; try one of {', '.join(LEVELS)}")
    return env
