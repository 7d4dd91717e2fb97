"""RISE for people: the covered inputs as a form that opens in any browser without a network, and the scores read back.

A person is a black box like any other: no gradient comes out of one either. The form holds every picture, text or sound
it asks about, keeps what was answered in the browser, and gives it back as a file.
"""

import hashlib
import io
import json
import wave
from base64 import b64encode
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from saccade.errors import UserError
from saccade.explaining.covers import Cover, SoundCover, TextCover
from saccade.explaining.rise import Estimate
from saccade.files import read_file
from saccade.folder import replace_file

FORMAT = 1
LARGEST_ANSWERS = 16 * 2**20
SHOWN_SIDE = 320
"""Pixels of a picture in the form."""
MOST = 5000
"""Questions of one form."""


def digest_of(cover: Cover) -> str:
    """Tells one input from another: answers to one are no answers to the other."""
    whole = cover.under(np.ones(cover.places, dtype=np.float32))
    content = whole.encode() if isinstance(whole, str) else np.ascontiguousarray(_array(whole)).tobytes()
    return hashlib.sha256(content).hexdigest()[:16]


def write_form(cover: Cover, path: Path, *, masks: int, seed: int, question: str) -> Path:
    """A page with a question about every covered copy of the input."""
    if not 2 <= masks <= MOST:
        raise UserError(f"{masks} questions; a form has between 2 and {MOST:,}")
    items = [shown(cover, mask) for mask in cover.masks(seed, 0, masks)]
    form = {"format": FORMAT, "input": digest_of(cover), "seed": seed, "masks": masks}
    page = (files(__package__) / "form.html").read_text("utf-8")
    data = json.dumps({"form": form, "items": items}).replace("</", "<\\/")
    replace_file(path, page.replace("{{question}}", escape(question)).replace("{{data}}", data).encode())
    return path


def shown(cover: Cover, mask_P: np.ndarray) -> str:
    """A covered input as HTML."""
    if isinstance(cover, TextCover):
        parts, end = [], 0
        for kept, (start, stop) in zip(mask_P.tolist(), cover.spans, strict=True):
            word = escape(cover.text[start:stop])
            # The word itself must not be in the page, nor its length.
            parts += [escape(cover.text[end:start]), word if kept >= 0.5 else '<span class="covered"></span>']
            end = stop
        return "<p>" + "".join([*parts, escape(cover.text[end:])]) + "</p>"
    whole = cover.under(mask_P)
    if isinstance(cover, SoundCover):
        return f'<audio controls src="data:audio/wav;base64,{b64encode(_wav(cover, whole)).decode()}"></audio>'
    return f'<img alt="" src="data:image/png;base64,{b64encode(_png(_array(whole))).decode()}">'


def _array(whole: Any) -> np.ndarray:
    """The samples or pixels of an input, which may stand in a tuple with others."""
    return np.asarray(whole[0] if isinstance(whole, tuple) else whole)


def _png(pixels: np.ndarray) -> bytes:
    from PIL import Image

    if pixels.dtype != np.uint8:
        pixels = (pixels * (255 if pixels.max(initial=0) <= 1 else 1)).clip(0, 255).astype(np.uint8)
    image = Image.fromarray(pixels[..., 0] if pixels.ndim == 3 and pixels.shape[2] == 1 else pixels)
    scale = SHOWN_SIDE / max(image.size)
    size = max(1, round(image.width * scale)), max(1, round(image.height * scale))
    image = image.resize(size, Image.Resampling.BICUBIC)
    content = io.BytesIO()
    image.save(content, "PNG", optimize=True)
    return content.getvalue()


def _wav(cover: SoundCover, whole: Any) -> bytes:
    samples = _array(whole).astype(np.float32)
    top = max(float(np.abs(cover.samples).max()), 1e-9) if cover.samples.dtype.kind == "i" else 1.0
    content = io.BytesIO()
    with wave.open(content, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(round(cover.length / cover.axis.seconds))
        file.writeframes((samples / top * 32767).clip(-32768, 32767).astype("<i2").tobytes())
    return content.getvalue()


def read_answers(cover: Cover, path: Path) -> Estimate:
    """What the answers of one form say. Questions may be left open."""
    try:
        table = json.loads(read_file(path, LARGEST_ANSWERS))
        form, answers = table["form"], [(int(number), float(score)) for number, score in table["answers"]]
        seed, masks = int(form["seed"]), int(form["masks"])
    except (ValueError, KeyError, TypeError):
        raise UserError(f"{path}: no answers of a form: use the file that its last button gives") from None
    if form.get("format") != FORMAT:
        raise UserError(f"{path}: answers of format {form.get('format')}; this version reads {FORMAT}")
    if form.get("input") != digest_of(cover):
        raise UserError(f"{path}: answers to a form about another input")
    numbers = [number for number, _ in answers]
    if len(set(numbers)) != len(numbers) or not all(0 <= number < masks <= MOST for number in numbers):
        raise UserError(f"{path}: answers to questions that the form does not have")
    if len(answers) < 2 or len({score for _, score in answers}) < 2:
        raise UserError(f"{path}: {len(answers)} answers, all alike: nothing can be told from them")
    estimate = Estimate(cover.places)
    drawn = np.stack([cover.masks(seed, number, number + 1)[0] for number in numbers])
    estimate.add(drawn, np.array([score for _, score in answers]))
    return estimate
