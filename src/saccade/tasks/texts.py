"""The training texts and the held-out texts of a recipe."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Literal

from pydantic import Field, model_validator

from saccade.config import Record
from saccade.data.documents import TextFile, read_documents
from saccade.errors import UserError


class FilesConfig(Record):
    """Files of text."""

    renamed: ClassVar[Mapping[str, str]] = {"hold": "held_out_share", "apart": "isolate_documents"}

    kind: Literal["files"] = "files"
    train: list[TextFile] = Field(min_length=1)
    """Training files."""
    valid: list[TextFile] = Field(default_factory=list)
    """Validation files: they select the best checkpoint."""
    held_out_share: float = Field(0.0, ge=0, lt=1)
    """Instead of `valid`: hold out this share of the text, from its end."""
    isolate_documents: bool = True
    """Documents in the same window do not attend to each other."""

    @model_validator(mode="after")
    def _something_is_held_out(self) -> "FilesConfig":
        if bool(self.valid) == (self.held_out_share > 0):
            raise ValueError("give either data.valid or data.held_out_share, the share of the text that is held out")
        return self


def split_texts(data: FilesConfig, folders: Sequence[Path], *, lowercase: bool) -> tuple[list[str], list[str]]:
    """Training and held-out documents. If there are few, one document is cut."""
    documents = read_documents(data.train, folders, lowercase=lowercase)
    if data.valid:
        return documents, read_documents(data.valid, folders, lowercase=lowercase)
    if len(documents) * min(data.held_out_share, 1 - data.held_out_share) >= 1:
        cut = int(len(documents) * (1 - data.held_out_share))
        training, held = documents[:cut], documents[cut:]
    else:
        training, held = _cut(documents, data.held_out_share)
    if not "".join(training).strip() or not "".join(held).strip():
        raise UserError(f"the text is too short to hold {data.held_out_share:.0%} of it out")
    return training, held


def _cut(documents: list[str], share: float) -> tuple[list[str], list[str]]:
    """Cut off the last `share` of the characters. A tenth of two books is not the second book."""
    total = sum(map(len, documents))
    training, held, left = list(documents), list[str](), total - int(total * (1 - share))
    while len(training) > 1 and left >= len(training[-1]):
        left -= len(training[-1])
        held.insert(0, training.pop())
    place = len(training[-1]) - left
    return [*training[:-1], training[-1][:place]], [part for part in (training[-1][place:], *held) if part]
