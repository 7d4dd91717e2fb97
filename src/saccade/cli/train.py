"""Commands that make models: train, resume."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from saccade.cli.names import ModelName, RecipeName

if TYPE_CHECKING:
    from saccade.tasks.fit import Fitted

DeviceName = Literal["auto", "cpu", "cuda", "mps"]


def train(
    recipe: RecipeName,
    /,
    *files: Path,
    out: Annotated[Path | None, Parameter(name=["--out", "-o"])] = None,
    set_: Annotated[list[str], Parameter(name="--set", negative="")] = [],  # noqa: B006
    from_: Annotated[ModelName, Parameter(name="--from")] = "",
    data: Path | None = None,
    device: DeviceName | None = None,
    tensorboard: Annotated[bool, Parameter(negative="")] = False,
    quiet: bool = False,
) -> int:
    """Train a model by a recipe, or from your own files without a recipe.

    For example:

        saccade train translation my.en my.es --out my-model
        saccade train translation pairs.tsv --out my-model
        saccade train classification reviews.tsv --out my-model
        saccade train pictures photos/ --out my-photos
        saccade train en-es --data ~/data
        saccade train en-es --set train.steps=500 --set model.encoder.layers=2 --out runs/small
        saccade train my-recipe.toml
        saccade train gpt2 my-book.txt --set model.layers=4 --set model.width=256 --set model.heads=4
        torchrun --nproc-per-node 2 -m saccade train en-es --set train.parallel.sharded=2

    Your own files, by task. Tables are tab separated, .csv or .jsonl; all files UTF-8, plain, .gz or .xz:

        translation     a table of source and target: pairs.tsv
                        or two files, line by line: my.en my.es
        classification  a table with a text (or two) and a label: reviews.csv
                        and perhaps more: train.csv valid.csv test.csv
        tagging         CoNLL-U, to train on and to choose by:
                        train.conllu dev.conllu, and perhaps test.conllu
        language        texts: my-book.txt
        masked          texts, blank lines between documents: my-text.txt
        pictures        a folder with a folder of pictures for each class: photos/
        reading         a table of picture files and texts, a word a line: labels.tsv
        captioning      a table of picture files and sentences: captions.tsv
        questions       a table of picture files, questions and answers: questions.tsv
        speech          a table of sound files and what is said in them: clips.tsv
        walking         a table of commands and actions, which stand between spaces: commands.tsv
        correction      none: it is trained by a recipe, such as speller
        pronunciation   none: it is trained by a recipe, such as pronouncer
        routes          none: it is trained by a recipe, such as sail
        acting          none: it is trained by a recipe, such as agent

    Ctrl-C saves and stops; `saccade resume DIR` continues from there.

    Parameters
    ----------
    recipe:
        Name of a recipe, a recipe file (.toml); or a task (such as translation) or a preset (saccade plan lists them),
        followed by your files.
    files:
        For a task: its files, see above.
    out:
        Output folder, which becomes the model folder. Default: runs/NAME.
    set_:
        Change a key of the recipe: dotted.key=value. May be repeated.
    from_:
        Model to start from, for classification and tagging: its encoder and its vocabulary; none: from scratch.
        Default: for own English texts the bundled English encoder.
    data:
        Folder of the recipe's data. Default: $SACCADE_DATA, then ./data.
    device:
        Where to compute: a GPU (cuda, mps) or the CPU. Default: the recipe's, which is auto: a GPU if there is one.
    tensorboard:
        Also write the curves for TensorBoard, to DIR/tensorboard.
    quiet:
        Print no progress.
    """
    from saccade.config import read_setting
    from saccade.data.text import data_folders
    from saccade.tasks.training import Show, run_folder, train_named

    changes = [read_setting(setting) for setting in set_] + ([("train.device", device)] if device else [])
    out = run_folder(recipe, files, out)
    fitted = train_named(recipe, files, out, data_folders(data), changes, init=from_, show=Show(quiet, tensorboard))
    return ended(fitted, out, quiet)


def resume(
    run: Path,
    /,
    *,
    data: Path | None = None,
    device: DeviceName | None = None,
    tensorboard: Annotated[bool, Parameter(negative="")] = False,
    quiet: bool = False,
) -> int:
    """Continue an interrupted training from its last checkpoint.

    For example:

        saccade resume runs/en-es

    Parameters
    ----------
    run:
        Folder of the training, made by `saccade train`.
    data:
        Folder of the data, if it was moved.
    device:
        Where to compute, if it is another device than before.
    tensorboard:
        Also write the curves for TensorBoard; a training that did so goes on with it.
    quiet:
        Print no progress.
    """
    from saccade.tasks.training import Show, go_on

    return ended(go_on(run, [data] if data else [], Show(quiet, tensorboard), device=device), run, quiet)


def ended(fitted: "Fitted", out: Path, quiet: bool) -> int:
    """Tell how a training ended; its exit code. Of several processes the first one tells."""
    from saccade.train.ranks import is_first

    if not is_first():
        return 0 if fitted.outcome.finished else 130
    if not fitted.outcome.finished:
        step = fitted.outcome.step
        print(f"stopped after step {step} and saved; go on with: saccade resume {out}", file=sys.stderr)
        return 130
    for score in fitted.scores:
        print(score)
    sys.stdout.flush()
    if not quiet:
        from saccade.train.leftovers import leftover_bytes

        print(f"the model is in {out}: saccade run {out} …", file=sys.stderr)
        print(
            f"saccade clean {out} frees {leftover_bytes(out) / 1e6:.1f} MB: checkpoints and encoded data",
            file=sys.stderr,
        )
    return 0
