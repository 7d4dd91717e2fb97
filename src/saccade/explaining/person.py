"""The black box that is a person: what they are shown, without any model."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from saccade.errors import UserError, WrongUse
from saccade.explaining.boxes import BlackBox
from saccade.explaining.covers import Cover, PictureCover, SoundCover, TextCover
from saccade.runtime.contract import Floats
from saccade.sources.picture import PictureSource
from saccade.sources.sound import SoundSource

LONGER_SIDE = 96
"""Pixels of a picture's map: people see no finer differences through masks, and a form must stay small."""


def person_subject(input: str, question: str | None) -> BlackBox:
    """A text, or a file with a picture or a sound, and what a person is asked about it."""
    cover, name = _cover(input)
    return BlackBox(_nobody, cover, name, question or "Does this show what it is about?")


def _cover(input: str) -> tuple[Cover, str]:
    suffix = Path(input).suffix.lower()
    if suffix in PictureSource.suffixes:
        whole = PictureSource().read(input).pixels_HWC
        scale = min(1.0, LONGER_SIDE / max(whole.shape[:2]))
        size = max(2, round(whole.shape[0] * scale)), max(2, round(whole.shape[1] * scale))
        return PictureCover(PictureSource(size_HW=size).read(input).pixels_HWC), input
    if suffix in SoundSource.suffixes:
        sound = SoundSource().read(input)
        return SoundCover(sound.samples, sound.rate, wrap=lambda samples: (samples, sound.rate)), input
    if suffix and " " not in input and Path(input).exists():
        raise UserError(f"{input}: a person is shown a text, a picture or a sound, not a {suffix} file")
    return TextCover(input), " ".join(input.split())


def _nobody(inputs: Sequence[Any]) -> Floats:
    raise WrongUse(f"{len(inputs)} inputs for a person: write a form with --questionnaire")
