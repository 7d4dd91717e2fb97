"""The command that shows and deletes what Saccade keeps outside model folders."""

import json
from typing import Annotated, Literal

from cyclopts import Parameter

KINDS = {
    "kernels-": "C kernels, compiled for this machine",
    "packed-": "weights of a large model, packed for the kernels",
    "checked-": "a large file whose digest was right",
    ".writing-": "not finished",
}
"""What the names of files begin with."""


def cache(*, clear: Annotated[bool, Parameter(negative="")] = False, format: Literal["text", "json"] = "text") -> int:
    """Show what Saccade keeps on this machine outside model folders; all of it can be made again.

    For example:

        saccade cache
        saccade cache --clear

    Parameters
    ----------
    clear:
        Delete all of it.
    format:
        json: one JSON object.
    """
    from saccade import cache as kept
    from saccade.errors import UserError

    try:
        place, listed = kept.place(), kept.listing()
        freed = kept.clear() if clear else 0
    except OSError as error:
        raise UserError(kept.explain(error)) from None
    why_not = kept.why_not() if place.is_symlink() or place.exists() else ""
    total = sum(file.bytes for file in listed)
    if format == "json":
        files = [{"name": file.name, "bytes": file.bytes} for file in listed]
        print(json.dumps({"folder": str(place), "refused": why_not, "files": files, "bytes": total, "freed": freed}))
        return 0
    if clear:
        print(f"deleted {_count(len(listed))}, {_size(freed)}, in {place}")
        return 0
    for file in listed:
        kind = next((kind for begin, kind in KINDS.items() if file.name.startswith(begin)), "")
        print(f"{_size(file.bytes):>9}  {file.name}  {kind}".rstrip())
    print(f"{_count(len(listed))}, {_size(total)}, in {place}" if not why_not else f"not used: {why_not}")
    return 0


def _count(files: int) -> str:
    return f"{files} file{'' if files == 1 else 's'}"


def _size(size: int) -> str:
    return f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{size / 1e3:.1f} kB"
