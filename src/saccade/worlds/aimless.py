"""Who does anything at all: what success means is seen beside it."""

import numpy as np

from saccade.worlds.contract import World

LONGEST = 1000
"""Actions in a world that does not end by itself."""


def reached_at_random(world: World, seed: int) -> bool:
    """Whether random actions fulfil the command of this world before it is over. The seed decides both."""
    world.reset(seed)
    random, reward = np.random.default_rng([seed, 2]), 0.0
    for _ in range(LONGEST):
        effect = world.step(int(random.integers(len(world.actions))))
        reward += effect.reward
        if effect.over:
            break
    return reward > 0
