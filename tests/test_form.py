"""The form of a questionnaire in a real browser, where there is one."""

from importlib.util import find_spec

import pytest

from fill_form import chromium, run


@pytest.mark.skipif(find_spec("playwright") is None, reason="playwright is not installed")
@pytest.mark.skipif(chromium() is None, reason="no Chromium on the path")
def test_a_form_is_filled_in_by_mouse_and_keys_and_read_back() -> None:
    found, count = run(str(chromium()), 60)
    assert (found, count) == (True, 60)
