"""What users find under `saccade`: the names, their types, and docstrings whose examples run."""

import doctest
import importlib
import importlib.util
import inspect
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import get_args, get_overloads

import pytest

import saccade
from saccade.folder import read_config
from saccade.pipelines.load import bundled_models, load
from saccade.pipelines.table import TASKS

# docs/ is no package, and others install folders of that name.
_SPEC = importlib.util.spec_from_file_location("reference", Path(__file__).parents[1] / "docs" / "api.py")
assert _SPEC is not None
assert _SPEC.loader is not None
_REFERENCE = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(_REFERENCE)
PAGES: dict[str, ModuleType] = {page.__name__: page for page in _REFERENCE.pages()}
EXAMPLES = [
    example
    for page in PAGES.values()
    for name in page.__all__
    for example in doctest.DocTestFinder(recurse=False).find(getattr(page, name), name, False, {"saccade": saccade})
    if example.examples
]


def test_the_names_are_listed_where_users_look_for_them() -> None:
    assert {name for name in dir(saccade) if not name.startswith("_")} == set(saccade.__all__)
    assert saccade.__doc__ is not None
    assert all(f"\n    {name} " in saccade.__doc__ for name in saccade.__all__)
    assert set(PAGES["saccade"].__all__) == set(saccade.__all__)
    assert all(getattr(saccade, name) is not None for name in saccade.__all__)


def test_help_does_without_pytorch() -> None:
    """In a small install, where torch cannot be imported."""
    code = "import sys; sys.modules['torch'] = None; import saccade; print(dir(saccade)); help(saccade)"
    ended = subprocess.run(
        [sys.executable, "-c", code], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=True
    )
    names, _, told = ended.stdout.partition("\n")
    assert "attention" not in names
    assert "load(model: " in told


def test_editors_know_what_each_bundled_model_is() -> None:
    declared = {
        model: inspect.signature(one).return_annotation
        for one in get_overloads(load)
        for model in get_args(inspect.signature(one).parameters["model"].annotation)
    }
    bundled = {path.name: TASKS[read_config(path).task].pipeline.partition(":")[2] for path in bundled_models()}
    assert {model: kind for model, kind in declared.items() if isinstance(model, str)} == bundled


def test_every_pipeline_and_every_source_has_its_place_in_the_reference() -> None:
    for row in TASKS.values():
        module, _, name = row.pipeline.partition(":")
        assert getattr(PAGES["saccade.pipelines"], name) is getattr(importlib.import_module(module), name)
        assert type(row.source).__name__ in PAGES["saccade.sources"].__all__


def test_there_are_examples() -> None:
    assert {"load", "watch", "Edit", "Looks", "UserError", "attention"} <= {example.name for example in EXAMPLES}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_examples_in_docstrings_run(example: doctest.DocTest) -> None:
    runner = doctest.DocTestRunner(verbose=False)
    assert runner.run(example).failed == 0
