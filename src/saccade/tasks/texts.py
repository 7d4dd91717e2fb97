"""Which texts a recipe trains on, and which are held out."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pydantic import Field, model_validator

from saccade.config import Record
from saccade.data.documents import TextFile, read_documents
from saccade.errors import UserError


class FilesConfig(Record):
    """Where the text is."""

    kind: Literal["files"] = "files"
    train: list[TextFile] = Field(min_length=1)
    """What is trained on."""
    valid: list[TextFile] = Field(default_factory=list)
    """Decides what is kept; never trained on."""
    hold: float = Field(0.0, ge=0, lt=1)
    """Instead of `valid`: this share of the text, its end, is held out."""
    apart: bool = True
    """Documents that share a window do not look at each other."""

    @model_validator(mode="after")
    def _something_is_held_out(self) -> "FilesConfig":
        if bool(self.valid) == (self.hold > 0):
            raise ValueError("give either data.valid or data.hold, the share of the text that is held out")
        return self


def split_texts(data: FilesConfig, folders: Sequence[Path], *, lowercase: bool) -> tuple[list[str], list[str]]:
    """The documents to train on and those held out; where they are few, one of them is cut."""
    documents = read_documents(data.train, folders, lowercase=lowercase)
    if data.valid:
        return documents, read_documents(data.valid, folders, lowercase=lowercase)
    if len(documents) * min(data.hold, 1 - data.hold) >= 1:
        cut = int(len(documents) * (1 - data.hold))
        training, held = documents[:cut], documents[cut:]
    else:
        training, held = _cut(documents, data.hold)
    if not "".join(training).strip() or not "".join(held).strip():
        raise UserError(f"the text is too short to hold {data.hold:.0%} of it out")
    return training, held


def _cut(documents: list[str], share: float) -> tuple[list[str], list[str]]:
    """All but the last `share` of the characters, and those: a tenth of two books is not the second book."""
    total = sum(map(len, documents))
    training, held, left = list(documents), list[str](), total - int(total * (1 - share))
    while len(training) > 1 and left >= len(training[-1]):
        left -= len(training[-1])
        held.insert(0, training.pop())
    place = len(training[-1]) - left
    return [*training[:-1], training[-1][:place]], [part for part in (training[-1][place:], *held) if part]
