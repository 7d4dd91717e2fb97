"""Commands that list models and data: models, show, data."""

import json
from pathlib import Path
from typing import Literal

from saccade.cli.names import ShownName

LARGEST_CARD = 2**20


def models(*, format: Literal["text", "json"] = "text") -> int:
    """List the bundled models: name, task, size of the folder, and what they do.

    For example:

        saccade models

    Parameters
    ----------
    format:
        json: one JSON object per line.
    """
    from saccade.pipelines.load import bundled_models
    from saccade.pipelines.table import TASKS

    widest = max(map(len, TASKS))
    for path in bundled_models():
        config = json.loads((path / "config.json").read_text(encoding="utf-8"))
        megabytes = sum(file.stat().st_size for file in path.iterdir() if file.is_file()) / 1e6
        card = (path / "README.md").read_text(encoding="utf-8").splitlines()
        summary = next((line for line in card[1:] if line.strip()), "")
        if format == "json":
            row = {"name": path.name, "task": config["task"], "megabytes": round(megabytes, 1), "summary": summary}
            print(json.dumps(row, ensure_ascii=False))
        else:
            print(f"{path.name:<12} {config['task']:<{widest}} {megabytes:5.1f} MB  {summary}")
    return 0


def show(model: ShownName, /) -> int:
    """Print the card of a model, or of a preset: a size that a paper published.

    For example:

        saccade show en-es
        saccade show gpt2-xl

    Parameters
    ----------
    model:
        Name of a bundled model, a model folder, or a preset (saccade plan lists them).
    """
    from saccade.presets.rows import PRESETS

    if model in PRESETS and not Path(model).exists():
        print(PRESETS[model].card())
        return 0
    from saccade.errors import UserError
    from saccade.files import read_file
    from saccade.folder import read_config
    from saccade.pipelines.load import model_path

    path = model_path(model)
    read_config(path)
    card = path / "README.md"
    if not card.exists():
        raise UserError(f"{path}: has no card (README.md)")
    print(read_file(card, LARGEST_CARD).decode("utf-8", "replace").rstrip())
    return 0


def data(*, data: Path | None = None, format: Literal["text", "json"] = "text") -> int:
    """List the data sets of the recipes: licence, source, and whether they are on this machine.

    For example:

        saccade data
        saccade data --data ~/data

    Parameters
    ----------
    data:
        Folder to search first; then $SACCADE_DATA, then ./data.
    format:
        json: one JSON object per line.
    """
    from saccade.data.catalog import CATALOG
    from saccade.data.text import data_folders

    folders = data_folders(data)
    for known in CATALOG:
        there = [folder for folder in folders if all((folder / known.folder / name).exists() for name in known.files)]
        where = str(there[0] / known.folder) if there else None
        if format == "json":
            row = {"name": known.folder, "what": known.what, "licence": known.licence, "source": known.source}
            print(json.dumps(row | {"here": where}, ensure_ascii=False))
            continue
        print(f"{known.folder}: {known.what}")
        print(f"    licence  {known.licence}")
        print(f"    get it   {known.source}")
        print(f"    here     {where or 'no; looked in ' + ', '.join(map(str, folders))}")
    return 0
