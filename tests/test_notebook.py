"""The quick-start notebook: its cells run from the first to the last, and show what the text around them says."""

import ast
import json
from pathlib import Path
from typing import Any

import pytest

NOTEBOOK = Path(__file__).parents[1] / "docs" / "quickstart.ipynb"


def run_cell(source: str, names: dict[str, Any], where: str) -> Any:
    """Run a cell as a notebook does; the value of its last line, if that is an expression."""
    tree = ast.parse(source, where)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, where, "exec"), names)
    return eval(compile(ast.Expression(last.value), where, "eval"), names) if isinstance(last, ast.Expr) else None


def test_the_cells_run_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "__main__"}
    shown = {
        cell["id"]: run_cell("".join(cell["source"]), names, cell["id"])
        for cell in json.loads(NOTEBOOK.read_text("utf-8"))["cells"]
        if cell["cell_type"] == "code"
    }
    assert shown["translate-code"] == ("este gato es muy grande", names["translation"].score)
    assert "<img" in shown["looks-code"]._repr_html_()
    assert shown["looks-shape"][2:] == (6, 6)
    assert shown["rows-code"] == 60
    assert [one.text for one in names["classifier"](["what a lovely film", "what an awful film"])] == ["good", "bad"]
    assert shown["again-code"] == "good"
    edited = shown["edit-code"]
    assert edited["none"] == "estamos comiendo pan con nuestros amigos"
    assert len(set(edited.values())) > 1, "the text promises that a layer is needed"
    assert "gato" not in shown["hide-code"]
    assert "once upon a time there was a small fox" in capsys.readouterr().out
    assert {path.name for path in tmp_path.iterdir()} == {"reviews", "reviews.tsv"}


def test_the_notebook_is_stored_without_outputs_and_names_files_that_exist() -> None:
    cells = json.loads(NOTEBOOK.read_text("utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)
    text = "".join("".join(cell["source"]) for cell in cells)
    named = {part.partition(")")[0] for part in text.split("](")[1:]}
    assert named
    assert all((NOTEBOOK.parent / name).is_file() for name in named)
