"""A short form of hostile_lines.py."""

import random

import pytest

from hostile_lines import check, hostile_line


@pytest.mark.parametrize("verb", ["translate", "correct", "pronounce", "fill", "tag"])
def test_as_many_lines_come_out_as_go_in(verb: str) -> None:
    chance = random.Random(1)
    content = b"".join(hostile_line(chance) + b"\n" for _ in range(60))
    wrong, how = check(verb, content, 60)
    assert wrong == [], how
