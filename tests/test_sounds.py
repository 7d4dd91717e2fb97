"""Sounds: a short form of mutated_sounds.py, a decoder that dies, formats, energies, pauses, subtitles, changes for
training."""

import os
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from mutated_sounds import FORMATS, good
from saccade.data.sound_augment import change_speed, masked, through_telephone, with_noise, wordless
from saccade.errors import UserError
from saccade.pipelines.pauses import cut_at_pauses
from saccade.pipelines.subtitles import cues, srt, vtt
from saccade.sources import decoding
from saccade.sources.sound import SoundSource
from saccade.sources.spectrogram import RANGE, log_mel, normalised

RATE = 16_000


def test_mutated_files_and_files_that_lie_end_in_one_clear_line() -> None:
    # In a process of its own: the memory that is measured is all that a process ever had.
    script = Path(__file__).parent / "mutated_sounds.py"
    ended = subprocess.run([sys.executable, script, "--count", "12"], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_every_format_is_the_same_sound() -> None:
    heard = [SoundSource().read(good(name)).samples for name in FORMATS]
    for samples in heard[1:]:
        length = min(len(samples), RATE) - 2_000
        assert np.corrcoef(samples[:length], heard[0][:length])[0, 1] > 0.98


def test_a_decoder_that_dies_takes_only_its_file_with_it() -> None:
    content = good("FLAC")
    assert decoding.decode(content, "one", 10).rate == RATE
    assert decoding._decoder is not None
    process = decoding._decoder.process
    os.kill(process.pid, signal.SIGSTOP)
    threading.Timer(0.3, process.kill).start()
    with pytest.raises(UserError, match="two: not a sound that can be read: the decoder failed on it"):
        decoding.decode(content, "two", 10)
    assert decoding.decode(content, "three", 10).rate == RATE


def test_a_decoder_that_takes_too_long_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    assert decoding.decode(good("FLAC"), "one", 10).rate == RATE
    assert decoding._decoder is not None
    os.kill(decoding._decoder.process.pid, signal.SIGSTOP)
    monkeypatch.setattr("saccade.sources.decoding.PATIENCE", 0.2)
    with pytest.raises(UserError, match=r"two: .* it takes longer than 0\.2 seconds"):
        decoding.decode(good("FLAC"), "two", 10)
    monkeypatch.undo()
    assert decoding.decode(good("FLAC"), "three", 10).rate == RATE


def speech(seconds: float, seed: int = 0) -> np.ndarray:
    """Something that gets louder and quieter like syllables."""
    moments = np.arange(int(RATE * seconds)) / RATE
    loud = np.maximum(0.02, np.sin(2 * np.pi * 2.5 * moments)) ** 2
    return (0.4 * loud * np.random.default_rng(seed).standard_normal(len(moments)).clip(-2, 2)).astype(np.float32)


def test_energies_do_not_depend_on_loudness_or_on_what_a_telephone_leaves_out() -> None:
    samples = speech(1.5)
    frames_TF = normalised(log_mel(samples, RATE, 80))
    assert frames_TF.shape == (150, 80)
    np.testing.assert_allclose(normalised(log_mel(0.1 * samples, RATE, 80)), frames_TF, atol=2e-2)
    np.testing.assert_allclose(frames_TF.mean(axis=0), 0, atol=1e-4)
    cut = log_mel(through_telephone(samples, RATE), RATE, 80)
    assert np.abs(normalised(cut)[:, -8:]).max() < 1e-4, "bands above 4 kHz are silence"
    assert cut.max() - RANGE > cut[:, -8:].max()
    assert len(log_mel(samples[:5], RATE, 40)) >= 1


def test_changes_for_training_are_what_they_say() -> None:
    samples, random = speech(2.0), np.random.default_rng(0)
    assert len(change_speed(samples, 1.1)) == pytest.approx(len(samples) / 1.1, abs=2)
    assert np.array_equal(change_speed(samples, 1.0), samples)
    tone = np.sin(2 * np.pi * 500 * np.arange(RATE) / RATE)
    faster = np.abs(np.fft.rfft(change_speed(tone, 2.0)))
    assert faster.argmax() == pytest.approx(1_000 * len(change_speed(tone, 2.0)) / RATE, abs=1)
    added = with_noise(samples, random, (20, 20)) - samples
    assert 10 * np.log10(np.square(samples).mean() / np.square(added).mean()) == pytest.approx(20, abs=0.1)
    for seed in range(12):
        nothing = wordless(RATE, np.random.default_rng(seed))
        assert 0.5 * RATE <= len(nothing) <= 4 * RATE
        assert np.isfinite(nothing).all()
    frames = np.ones((100, 40), dtype=np.float32)
    hidden = masked(frames, np.random.default_rng(3), bands=2, gaps=3, share=0.05)
    assert (frames == 1).all(), "the caller's are left alone"
    assert 0 < (hidden == 0).mean() <= 0.25 * 2 + 0.06 * 3
    assert np.array_equal(hidden, masked(frames, np.random.default_rng(3)))
    assert np.array_equal(masked(frames, random, bands=0, gaps=0), frames)


def test_long_recordings_are_cut_at_pauses_and_silence_has_no_stretch() -> None:
    quiet = (1e-4 * np.random.default_rng(1).standard_normal(2 * RATE)).astype(np.float32)
    whole = np.concatenate([quiet, speech(4.0), quiet, speech(5.0, 1), quiet, speech(3.0, 2), quiet])
    stretches = cut_at_pauses(whole, RATE, 9.0)
    assert len(stretches) == 3
    for one, begin, length in zip(stretches, (2, 8, 15), (4, 5, 3), strict=True):
        assert begin - 0.4 < one.start / RATE < begin + 0.4
        assert begin + length - 0.5 < one.end / RATE < begin + length + 0.4
    assert [(one.start, one.end) for one in cut_at_pauses(speech(4.0), RATE, 9.0)] == [(0, 4 * RATE)]
    for nothing in (np.zeros(3 * RATE), quiet, 0.3 * np.random.default_rng(2).standard_normal(30 * RATE).clip(-3, 3)):
        assert cut_at_pauses(nothing.astype(np.float32), RATE, 9.0) == []
    without_pauses = cut_at_pauses(speech(40.0), RATE, 9.0)
    assert len(without_pauses) >= 5
    assert all(one.end - one.start <= 9.3 * RATE for one in without_pauses)


@dataclass(frozen=True)
class Said:
    """A word with times."""

    text: str
    start: float
    end: float


def test_words_become_subtitles() -> None:
    words = [Said("FIVE", 0.5, 0.9), Said("<SIX>", 1.0, 1.4), Said("NINE", 3661.0, 3661.4996)]
    assert [cue.text for cue in cues(words)] == ["FIVE <SIX>", "NINE"]
    assert srt(words) == ("1\n00:00:00,500 --> 00:00:01,400\nFIVE <SIX>\n\n2\n01:01:01,000 --> 01:01:01,500\nNINE\n")
    assert vtt(words).startswith("WEBVTT\n\n00:00:00.500 --> 00:00:01.400\nFIVE &lt;SIX&gt;\n")
    assert (srt([]), vtt([])) == ("", "WEBVTT\n")
    many = cues([Said("WORD", 0.4 * number, 0.4 * number + 0.3) for number in range(40)])
    assert all(len(cue.text) <= 42 and cue.end - cue.start <= 6 for cue in many)
