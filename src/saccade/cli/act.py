"""The command that acts in worlds: act."""

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from saccade.cli.asking import answer_all
from saccade.cli.names import ModelName
from saccade.cli.output import answers_to, tell
from saccade.cli.progress import progress_bar
from saccade.cli.start import load_model, starting
from saccade.cli.understand import PlainOptions
from saccade.errors import WrongUse
from saccade.pipelines.table import TASKS

if TYPE_CHECKING:
    from saccade.pipelines.agent import Run

MOST_EPISODES = 100_000


@Parameter(name="*")
@dataclass(frozen=True)
class ActingOptions(PlainOptions):
    """Options of act."""

    look: Annotated[Path | None, Parameter(show_default=False)] = None
    "Draw where it looked: of an episode FILE.gif or a filmstrip, FILE.png; of a picture FILE.png or FILE.svg."


ACTING = ActingOptions()


def act(
    *inputs: str,
    world: Annotated[str, Parameter(show_default=False)] = "",
    seed: int = 0,
    episodes: int = 1,
    model: ModelName = TASKS["acting"].model,
    options: ActingOptions = ACTING,
) -> int:
    """Act in a world until its command is fulfilled, or tell the next action for a picture and a command.

    Worlds are levels of BabyAI and need the package minigrid (pip install 'saccade[worlds]'); pictures need nothing. A
    picture is of what the agent sees: seven by seven fields, itself below in the middle, looking up.

    For example:

        saccade train agent --out my-agent
        saccade act --world BabyAI-GoToLocal-v0 --model my-agent
        saccade act --world BabyAI-GoToLocal-v0 --seed 7 --look run.gif --model my-agent
        saccade act --world BabyAI-PickupLoc-v0 --episodes 100 --model my-agent
        saccade act world.png "go to the red ball" --model my-agent
        saccade act world.png "go to the red ball" --best 6 --look where.png --model my-agent

    Parameters
    ----------
    inputs:
        A picture of what is seen, and a command; nothing with --world.
    world:
        A level, such as BabyAI-GoToObj-v0, BabyAI-GoToLocal-v0, BabyAI-PickupLoc-v0, BabyAI-GoTo-v0.
    seed:
        Which world of the level; further episodes are in the worlds after it.
    episodes:
        How many worlds to act in. Of several the share of successes is printed, beside that of random actions.
    model:
        Folder of a model trained for acting.
    """
    if bool(world) == bool(inputs):
        raise WrongUse(
            'give a picture and a command (saccade act world.png "go to the red ball"), or a world (saccade act '
            "--world BabyAI-GoToLocal-v0)"
        )
    if not model:
        raise WrongUse("no agent is bundled: train one (saccade train agent --out my-agent), then act --model my-agent")
    if not world:
        if len(inputs) != 2:
            raise WrongUse(f'a picture and a command are expected, in quotes: world.png "…"; {len(inputs)} were given')
        if (seed, episodes) != (0, 1):
            raise WrongUse("--seed and --episodes are for worlds: add --world")
        return answer_all(inputs[:1], model, options, TASKS["acting"], question=inputs[1])
    if not 1 <= episodes <= MOST_EPISODES:
        raise WrongUse(f"--episodes must be between 1 and {MOST_EPISODES:,}, not {episodes}")
    if seed < 0:
        raise WrongUse(f"--seed must be at least 0, not {seed}")
    if options.look is not None and episodes > 1:
        raise WrongUse(f"{options.look} can hold one episode, but there are {episodes}; leave out --episodes")
    with answers_to(options.output):
        return _act_in(world, range(seed, seed + episodes), model, options)


def _act_in(name: str, seeds: range, model: str, options: ActingOptions) -> int:
    with starting():
        from saccade.look.filmstrip import check_film, draw_film
        from saccade.pipelines.agent import Agent
        from saccade.worlds.opening import maker_of

        if options.look is not None:
            check_film(options.look)
        make = maker_of(name)
        make()  # a level that there is not is told before the model is loaded
    agent = load_model(model, options.how)
    if not isinstance(agent, Agent):
        raise WrongUse(f"{model} is no model that acts")
    with progress_bar("acting", quiet=options.quiet or len(seeds) == 1) as report:
        runs = agent.play_seeds(make, seeds, look=options.look is not None, report=report)
    _print_runs(name, runs, options)
    if options.look is not None:
        draw_film(agent.film(runs[0]), options.look)
        tell(f"drew {options.look}", quiet=options.quiet)
    return 0


def _print_runs(name: str, runs: "list[Run]", options: ActingOptions) -> None:
    from saccade.evaluate.routes import success
    from saccade.worlds.aimless import reached_at_random
    from saccade.worlds.opening import maker_of, short_name

    if options.format == "json":
        for run in runs:
            print(json.dumps(run.record(), ensure_ascii=False))
    elif len(runs) == 1:
        (run,) = runs
        print(f"{run.episode.command}: {' '.join(run.episode.choices)} → {run.outcome}")
    else:
        world, short = maker_of(name)(), short_name(name)
        print(success(f"success, {short}", [run.reached for run in runs], what="worlds"))
        at_random = [reached_at_random(world, run.seed) for run in runs]
        print(success(f"success, {short}, at random", at_random, what="worlds"))
    sys.stdout.flush()
