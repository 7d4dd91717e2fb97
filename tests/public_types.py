"""What mypy must find out about the public names; checked by mypy, never run."""

from typing import Any, assert_type

import saccade
from saccade.pipelines.completer import Completer, Completion
from saccade.pipelines.corrector import Corrector
from saccade.pipelines.filler import Filler
from saccade.pipelines.pronouncer import Pronouncer
from saccade.pipelines.tagger import Tagger
from saccade.pipelines.translator import Translation, Translator
from saccade.pipelines.walker import Walker

assert_type(saccade.load("en-es"), Translator)
assert_type(saccade.load("en-es-rnn", "exact"), Translator)
assert_type(saccade.load("stories"), Completer)
assert_type(saccade.load("speller"), Corrector)
assert_type(saccade.load("pronouncer"), Pronouncer)
assert_type(saccade.load("bert-mini"), Filler)
assert_type(saccade.load("tagger"), Tagger)
assert_type(saccade.load("walker"), Walker)
assert_type(saccade.load("runs/my-model"), Any)
assert_type(saccade.load("en-es")("one", beam=1), Translation)
assert_type(saccade.load("stories")(["one", "two"]), list[Completion])
assert_type(saccade.load("en-es")("one").looks, saccade.Looks)
assert_type(saccade.load("en-es")("one").best, list[Translation])
assert_type(saccade.Edit(without_source=[1]), saccade.Edit)
