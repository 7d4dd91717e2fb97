"""Progress, told to the person who waits; results go to standard output and to files."""

import sys
from importlib.util import find_spec


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def installed(engine: str, package: str) -> bool:
    """Whether a peer can be measured; says so if not."""
    if find_spec(package) is not None:
        return True
    say(f"{engine}: skipped, {package} is not installed (pip install '.[bench]')")
    return False
