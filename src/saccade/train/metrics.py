"""The figures of a run in files: `metrics.jsonl`, the same numbers in `metrics.csv`, and for TensorBoard if asked."""

import csv
import io
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from saccade.config import flat
from saccade.errors import UserError

Entry = dict[str, Any]
"""A step and its figures; those of a validation are a table of their own."""
TENSORBOARD = "tensorboard"


class MetricFiles:
    """Writes every entry to all files at once. A resumed run goes on behind the step it resumes from."""

    def __init__(self, folder: Path, *, tensorboard: bool = False) -> None:
        self.folder, self.entries, self.columns = folder, list[Entry](), list[str]()
        self.writer_class = _summary_writer() if tensorboard else None
        self.writer: Any = None

    def start(self, step: int) -> None:
        """Drop what an interrupted run wrote after `step`."""
        path = self.folder / "metrics.jsonl"
        if path.exists():
            lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
            self.entries = [entry for entry in map(_entry, lines) if entry and entry["step"] <= step]
        _replace(path, "".join(json.dumps(entry) + "\n" for entry in self.entries))
        self.file = path.open("a", encoding="utf-8")
        self._rewrite_table()
        if self.writer_class is not None:
            # TensorBoard itself drops what an interrupted run wrote from `purge_step` on.
            purge = {"purge_step": step + 1} if step else {}
            self.writer = self.writer_class(str(self.folder / TENSORBOARD), **purge)

    def write(self, entry: Entry) -> None:
        self.entries.append(entry)
        self.file.write(json.dumps(entry) + "\n")
        self.file.flush()
        row = dict(flat(entry))
        if row.keys() <= set(self.columns):
            with (self.folder / "metrics.csv").open("a", encoding="utf-8", newline="") as file:
                file.write(_rows(self.columns, [row]))
        else:
            self._rewrite_table()
        if self.writer is not None:
            for name, value in row.items():
                if name != "step":
                    tag = name.replace("validation.", "validation/", 1) if "." in name else f"training/{name}"
                    self.writer.add_scalar(tag, value, entry["step"])
            if "validation" in entry:
                self.writer.flush()

    def close(self) -> None:
        self.file.close()
        if self.writer is not None:
            self.writer.close()

    def _rewrite_table(self) -> None:
        """The table has a column for every figure, and a validation brings new ones."""
        rows = [dict(flat(entry)) for entry in self.entries]
        self.columns = list(dict.fromkeys(name for row in rows for name in row))
        header = ",".join(self.columns) + "\n" if self.columns else ""
        _replace(self.folder / "metrics.csv", header + _rows(self.columns, rows))


def _summary_writer() -> Any:
    try:
        from tensorboardX import SummaryWriter
    except ImportError:
        raise UserError(
            "--tensorboard needs tensorboardX, which is not installed: pip install 'saccade[tensorboard]', "
            "in a clone '.[tensorboard]'"
        ) from None
    return SummaryWriter


def _rows(columns: list[str], rows: Iterable[dict[str, Any]]) -> str:
    text = io.StringIO()
    csv.DictWriter(text, columns, lineterminator="\n").writerows(rows)
    return text.getvalue()


def _replace(path: Path, text: str) -> None:
    aside = path.with_name(f".writing-{path.name}")
    aside.write_text(text, encoding="utf-8")
    aside.rename(path)


def _entry(line: str) -> Entry | None:
    """A line of metrics.jsonl; None for one that a crash cut short."""
    try:
        entry = json.loads(line)
    except ValueError:
        return None
    return entry if isinstance(entry, dict) and isinstance(entry.get("step"), int) else None
