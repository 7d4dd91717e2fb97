"""Reads the pictures of a set once, to one size; features that another network makes of them are kept on disk."""

import hashlib
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from saccade.data.picture_texts import StoredExamples
from saccade.data.prepared import keep, kept
from saccade.errors import UserError
from saccade.sources.picture import PictureSource

AT_ONCE = 32
"""Pictures that features are computed of together."""
Report = Callable[[int, int], None]
Row = tuple[str, str, str]
"""Picture file, question (empty in captioning) and text."""
OpenPicture = Callable[[str], str | Path | bytes]
"""A name in a table -> the file, or what is in it."""


def zipped(archive: Path) -> OpenPicture:
    """Pictures in an archive, perhaps in its folder images."""
    opened = zipfile.ZipFile(archive)
    names = {Path(entry).as_posix().removeprefix("images/"): entry for entry in opened.namelist()}
    return lambda name: opened.read(names[name])


@dataclass(frozen=True)
class PictureReading:
    """How pictures are read."""

    source: PictureSource
    """Brings them to one size."""
    report: Report
    encode: Callable[[np.ndarray], np.ndarray] | None = None
    """Pixels of some pictures -> features that stay as they are."""
    cache: Path | None = None
    """The folder where features are kept, in float16."""

    def examples(self, open_one: OpenPicture, rows: Sequence[Row], told: list[str] | None = None) -> StoredExamples:
        """Each picture is read once. One that cannot be read is an error, or is told and left out."""
        names = list(dict.fromkeys(name for name, _, _ in rows))
        pictures, good_N = self._cached(open_one, names, told)
        places = {name: place for place, name in enumerate(np.array(names, dtype=object)[good_N].tolist())}
        chosen = [row for row in rows if row[0] in places]
        questions = [asked for _, asked, _ in chosen if asked]
        return StoredExamples(
            pictures, np.array([places[name] for name, _, _ in chosen]), questions, [text for _, _, text in chosen]
        )

    def _cached(
        self, open_one: OpenPicture, names: Sequence[str], told: list[str] | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """The pictures, or their features, and which of the names could be read."""
        if self.encode is None or self.cache is None:
            return self._pictures(open_one, names, told)
        folder = self.cache / hashlib.sha256("\n".join(names).encode()).hexdigest()[:16]
        found = kept(folder)
        if found is None:
            pictures, good_N = self._pictures(open_one, names, told)
            found = keep(folder, {"features": pictures, "good": good_N})
        return found["features"], np.asarray(found["good"])

    def _pictures(
        self, open_one: OpenPicture, names: Sequence[str], told: list[str] | None
    ) -> tuple[np.ndarray, np.ndarray]:
        good_N, parts, waiting = np.zeros(len(names), dtype=bool), list[np.ndarray](), list[np.ndarray]()
        # Pixels are not held longer than needed: features may be far smaller.
        for number, pixels in self._pixels(open_one, names, told):
            good_N[number] = True
            waiting.append(pixels)
            if self.encode is not None and len(waiting) == AT_ONCE:
                parts.append(self.encode(np.stack(waiting)))
                waiting = []
        if waiting:
            parts.append(np.stack(waiting) if self.encode is None else self.encode(np.stack(waiting)))
        if not parts:
            raise UserError("none of the pictures can be read" + (f"; the first: {told[0]}" if told else ""))
        return parts[0] if len(parts) == 1 else np.concatenate(parts), good_N

    def _pixels(
        self, open_one: OpenPicture, names: Sequence[str], told: list[str] | None
    ) -> Iterator[tuple[int, np.ndarray]]:
        for number, name in enumerate(names):
            try:
                yield number, self.source.read(open_one(name)).pixels_HWC
            except UserError as error:
                if told is None:
                    raise
                told.append(f"left out: {error}")
            self.report(number + 1, len(names))
