"""From recordings to a listener: the sets, a training on tones that is asked everything, the commands."""

import io
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch

import saccade
from conftest import shaken
from saccade.arch.encoder_decoder import EncoderDecoderConfig
from saccade.config import read_toml
from saccade.data.batches import SequenceBatch
from saccade.data.speech_frames import SoundAugmentConfig, changed_frames
from saccade.data.speech_sets import RecordedSets, Utterance, read_sets
from saccade.errors import UserError, WrongUse
from saccade.evaluate.calibration import calibration_error, fit_power
from saccade.evaluate.speech import letter_errors, monotone_share, right_words, word_errors
from saccade.models.answering import arrays_of
from saccade.models.contract import Memory
from saccade.runtime.open import SequenceRuntime
from saccade.tasks.speech import SpeechRecipe, front_of
from saccade.train.objective import SequenceObjective
from spoken_tones import RATE, tones, write_clips
from tiny import ask, insist_one_line

SMALL = [
    "model.encoder.layers=1", "model.encoder.width=32", "model.encoder.feedforward=64", "model.encoder.heads=2",
    "model.encoder.dropout=0.0", "model.encoder.convolution=7",
    "model.encoder.front={kind = 'sound', rate = 8000, mels = 20, stages = [{width = 8, stride = [2, 2]}, "
    "{width = 8, stride = [2, 2]}]}",
    "model.decoder.width=32", "model.decoder.feedforward=64", "model.decoder.heads=2", "model.decoder.dropout=0.0",
    "train.steps=240", "train.warmup=20", "train.validate_every=120", "train.batch_tokens=400",
    "train.adam.rate=4e-3", "train.average=1", "train.seed=3",
    "augment.speeds=[1.0]", "augment.bands=0", "augment.gaps=0", "augment.wordless=4",
]  # fmt: skip


@pytest.fixture(scope="module")
def clips(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_clips(tmp_path_factory.mktemp("clips"), 60)


@pytest.fixture(scope="module")
def listener(clips: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "tones"
    changes = [part for change in SMALL for part in ("--set", change)]
    said = ask("train", "speech", clips, "--out", out, *changes)
    assert said.code == 0, said.err
    told = said.out + said.err
    assert "62 rows; 4 blocks of width 96" in told
    assert f"left out: {clips.parent}/missing.wav: No such file" in told
    assert f"left out: {clips.parent}/text.wav: not a sound" in told
    assert "WER, held out" in told
    return out


def test_tones_are_learnt_and_scored(listener: Path, clips: Path, tmp_path: Path) -> None:
    said = ask("evaluate", listener, "--format", "json")
    scores = {one["name"]: one for one in map(json.loads, said.lines)}
    assert scores["WER, held out"]["value"] <= 20
    assert scores["CER, held out"]["value"] <= 20
    assert "calibration error" in scores
    assert 0 <= scores["monotone steps, held out"]["value"] <= 100
    table = write_clips(tmp_path / "more", 6, seed=9)
    insist_one_line(ask("evaluate", listener, table), 1, ["missing.wav", "No such file"])


def test_a_recording_is_written_down_in_every_form(listener: Path, tmp_path: Path) -> None:
    import soundfile

    samples = tones(["LOW", "TOP", "MID"], np.random.default_rng(5))
    from saccade.sources.resample import resampled

    stereo = np.stack([resampled(samples, RATE, 44_100)] * 2, axis=1)
    soundfile.write(tmp_path / "one.flac", stereo, 44_100)
    assert ask("transcribe", tmp_path / "one.flac", "--model", listener).lines == ["LOW TOP MID"]
    wav = io.BytesIO()
    soundfile.write(wav, samples, RATE, format="WAV")
    assert ask("transcribe", "-", "--model", listener, stdin=wav.getvalue()).lines == ["LOW TOP MID"]
    (record,) = map(json.loads, ask("transcribe", tmp_path / "one.flac", "--model", listener, "--format", "json").lines)
    assert [word["text"] for word in record["words"]] == ["LOW", "TOP", "MID"]
    for word, begin in zip(record["words"], (0.1, 0.45, 0.8), strict=True):
        assert begin - 0.15 < word["start"] < word["end"] < begin + 0.45
        assert 0 < word["confidence"] <= 1
    assert record["seconds"] == pytest.approx(len(samples) / RATE, abs=0.01)
    srt = ask("transcribe", tmp_path / "one.flac", "--model", listener, "--format", "srt").out
    assert srt.startswith("1\n00:00:00,")
    assert "LOW TOP MID" in srt
    best = ask("transcribe", tmp_path / "one.flac", "--model", listener, "--best", "3").lines
    assert len(best) == 3
    assert best[0].endswith("\tLOW TOP MID")
    assert len({line.split("\t")[1] for line in best}) == 3
    for suffix, begin in ((".png", b"\x89PNG"), (".svg", b"<?xml"), (".html", b"<!doctype html>")):
        file = tmp_path / f"letters{suffix}"
        said = ask("transcribe", tmp_path / "one.flac", "--model", listener, "--look", file)
        assert said.code == 0, said.err
        assert file.read_bytes().startswith(begin)
    assert ">TOP<" in (tmp_path / "letters.svg").read_text()
    assert "LOW" in ask("transcribe", tmp_path / "one.flac", "--model", listener, "--look").out


def test_silence_and_bad_files_on_the_command_line(listener: Path, tmp_path: Path) -> None:
    import soundfile

    soundfile.write(tmp_path / "silent.wav", np.zeros(3 * RATE), RATE)
    said = ask("transcribe", tmp_path / "silent.wav", "--model", listener)
    assert (said.code, said.out) == (0, "\n")
    (tmp_path / "text.wav").write_text("no sound")
    for name, words in (("text.wav", "not a sound"), ("none.wav", "No such file")):
        said = ask("transcribe", tmp_path / name, "--model", listener)
        assert (said.code, said.out, said.err.count("\n")) == (1, "\n", 1)
        assert words in said.err
    insist_one_line(ask("transcribe", "a.wav"), 2, ["no listener is bundled"])
    insist_one_line(ask("transcribe", "a.wav", "--model", listener, "--best", "0"), 2, ["--best"])
    insist_one_line(ask("transcribe", "a.wav", "--model", listener, "--best", "2", "--format", "srt"), 2, ["one text"])
    insist_one_line(ask("transcribe", "a.wav", "--model", listener, "--look", "x.jpg"), 2, [".html"])


def test_a_long_recording_has_times_from_its_beginning(listener: Path) -> None:
    random, transcribe = np.random.default_rng(8), saccade.load(listener)
    one, other = tones(["MID", "LOW"], random), tones(["TOP"], random)
    pause = 1e-3 * random.standard_normal(6 * RATE)
    found = transcribe((np.concatenate([one, pause, other, pause, one]).astype(np.float32), RATE))
    assert found.text.startswith("MID LOW TOP ")
    assert found.text.replace(" ", "") == "MIDLOWTOPMIDLOW"  # a model of seconds may lose a space
    assert len(found.stretches) == 3
    starts = [word.start for word in found.words]
    assert starts == sorted(starts)
    assert starts[2] == pytest.approx(len(one) / RATE + 6.1, abs=0.3)
    assert found.looks.parts == 3
    alone = transcribe((one, RATE))
    assert alone.text == "MID LOW"
    assert [word.confidence for word in alone.words] == pytest.approx(
        [word.confidence for word in transcribe([(one, RATE), (other, RATE)])[0].words], rel=1e-3
    )


def test_without_pytorch_it_is_the_same(listener: Path) -> None:
    samples = tones(["TOP", "TOP", "LOW"], np.random.default_rng(4))
    exact, fast = (saccade.load(listener, how)((samples, RATE)) for how in ("exact", None))
    assert exact.text == fast.text == "TOP TOP LOW"
    assert saccade.load(listener).choice.engine in ("kernels", "plain")
    said = ask("doctor", listener)
    assert "convolution = 7 of the encoder" in said.out or "no C kernels" in said.out


def test_texts_of_known_words_come_first(listener: Path) -> None:
    transcribe = saccade.load(listener)
    assert transcribe.words == {"LOW", "MID", "TOP"}
    samples = tones(["TOP", "LOW"], np.random.default_rng(6))
    likeliest = [one.text for one in transcribe((samples, RATE), best=6).best]
    transcribe.settings = transcribe.settings.model_copy(update={"unknown_word_cost": 1e6})
    ranked = [one.text for one in transcribe((samples, RATE), best=6).best]
    unknown = [sum(word not in transcribe.words for word in text.split()) for text in ranked]
    assert unknown == sorted(unknown)
    assert sorted(ranked) == sorted(likeliest)
    assert max(unknown) > 0


# Parts of it


@pytest.mark.parametrize("name", ["an4", "an4-pyramid", "listener"])
def test_recipes_are_read_and_their_models_are_of_the_promised_size(name: str) -> None:
    path = Path(saccade.__file__).parent / "recipes" / f"{name}.toml"
    recipe = SpeechRecipe.read(read_toml(path), where=name)
    from saccade.arch.weights import parameters

    config = recipe.model.model_copy(update={"ctc": True, "tie": "decoder"})
    assert 1e6 < parameters(config.weights(31)) < 8e6
    assert front_of(recipe.model).shrinks in (1, 4)


def test_another_front_end_is_refused() -> None:
    with pytest.raises(WrongUse, match='kind = "sound"'):
        front_of(EncoderDecoderConfig())


def test_the_ctc_loss_of_sounds_of_different_lengths_is_each_ones_own() -> None:
    """By PyTorch's loss, one recording at a time and without padding."""
    front = {"kind": "sound", "mels": 6, "stages": [{"width": 3, "stride": [2, 2]}]}
    stack = {"kind": "transformer", "width": 12, "heads": 2, "layers": 1, "feedforward": 24}
    model = shaken({"encoder": stack | {"front": front, "convolution": 5}, "decoder": stack, "ctc": True}, 20, 0)
    lengths, texts = [30, 17], [[5, 5, 6], [7, 8]]
    frames = torch.randn(2, 30, 6)
    mask = torch.arange(30) < torch.tensor(lengths)[:, None]
    labels, target = torch.tensor([[5, 5, 6, 2], [7, 8, 2, 0]]), torch.tensor([[1, 5, 5, 6], [1, 7, 8, 0]])
    batch = SequenceBatch(frames, mask, target, labels, labels != 0, np.arange(2))
    total, _ = SequenceObjective(0.0, 0.5)(model, batch)["ctc"]
    alone = []
    for number, (length, text) in enumerate(zip(lengths, texts, strict=True)):
        memory = model.read(frames[number : number + 1, :length])
        assert isinstance(memory, Memory)
        logits, count = model.columns(memory)
        logprobs = logits.log_softmax(-1).transpose(0, 1)
        loss = torch.nn.functional.ctc_loss(
            logprobs, torch.tensor([text]), count, torch.tensor([len(text)]), reduction="sum"
        )
        alone.append(float(loss.detach()))
    assert float(total.detach()) == pytest.approx(sum(alone), rel=1e-5)
    runtime = SequenceRuntime(model.config, arrays_of(model), "exact")
    heard = runtime.columns(runtime.read(frames.numpy(), mask.numpy()))
    assert heard is not None
    expected = model.columns(model.read(frames, mask))[0].log_softmax(-1)  # type: ignore[arg-type]
    np.testing.assert_allclose(heard[0], expected[0].detach().numpy(), atol=1e-4)


def test_errors_are_counted_by_jiwer() -> None:
    right, heard = ["ONE TWO THREE", "FOUR", ""], ["ONE TOO THREE FIVE", "", "SIX"]
    assert word_errors(right, heard, "x").value == pytest.approx(100 * (2 + 1 + 1) / 4)
    assert word_errors(right, right, "x").value == 0
    assert letter_errors(["AB"], ["AC"], "x").value == 50
    assert right_words(right[0], heard[0]) == [True, False, True, False]
    assert right_words("", "SIX") == [False]
    forward = np.eye(6, dtype=np.float32)[[0, 2, 4]]
    assert monotone_share([forward], "x").value == 100
    assert monotone_share([forward, forward[::-1]], "x").value == 50


def test_confidences_are_fitted_to_what_is_right() -> None:
    random = np.random.default_rng(0)
    said = random.uniform(0.05, 1, 4_000)
    right = random.random(4_000) < said**0.5
    assert fit_power(said.tolist(), right.tolist()) == pytest.approx(0.5, rel=0.1)
    assert fit_power([0.3, 0.4], [True, True]) == 1
    assert fit_power([], []) == 1
    better = calibration_error((said**0.5).tolist(), right.tolist()).value
    assert better < 4 < calibration_error(said.tolist(), right.tolist()).value


def test_strings_of_digits_are_joined_from_clips_of_their_own_part(tmp_path: Path) -> None:
    import soundfile

    folder = tmp_path / "fsdd"
    folder.mkdir()
    rows = ["file\tdigit\tspeaker\tindex\tsplit\tseconds"]
    with zipfile.ZipFile(folder / "recordings.zip", "w") as archive:
        for speaker, level in (("ann", 0.1), ("bob", 0.2)):
            for digit in range(10):
                for index in (0, 5, 9):
                    name, written = f"{digit}_{speaker}_{index}.wav", io.BytesIO()
                    # The loudness tells the part: 1 for the test, 2 to choose by, 3 to train.
                    sound = np.full(200, level * (1 + (index > 0) + (index > 5)), dtype=np.float32)
                    soundfile.write(written, sound, 8_000, format="WAV", subtype="FLOAT")
                    archive.writestr(f"recordings/{name}", written.getvalue())
                    rows.append(f"{name}\t{digit}\t{speaker}\t{index}\t{'test' if index < 5 else 'train'}\t0.025")
    (folder / "index.tsv").write_text("\n".join([*rows, ""]))
    parts = read_sets(RecordedSets(fsdd="fsdd", strings=40), [tmp_path], 1)
    assert len(parts.train) == 20 + 40
    assert len(parts.test["digits, single"]) == 20

    def levels(spoken: list[Utterance]) -> set[int]:
        return {round(10 * float(level)) for one in spoken for level in one.samples if level > 0.05}

    assert levels(parts.test["digits, strings"]) == {1, 2}
    assert levels(parts.train) == {3, 6}
    assert levels(parts.valid) == {2, 4}
    assert max(len(one.text.split()) for one in parts.train) == 6
    again = read_sets(RecordedSets(fsdd="fsdd"), [tmp_path], 1, train=False)
    assert [one.text for one in again.test["digits, strings"]] == [one.text for one in parts.test["digits, strings"]]
    held = read_sets(RecordedSets(fsdd="fsdd", held_out_speaker="ann", strings=9), [tmp_path], 1)
    assert levels(held.train) == {6}
    assert len(held.test["digits, single, speaker ann"]) == 30
    with pytest.raises(UserError, match="no speaker 'eve'; ann, bob"):
        read_sets(RecordedSets(fsdd="fsdd", held_out_speaker="eve"), [tmp_path], 1)
    with pytest.raises(UserError, match="nothing to train on"):
        read_sets(RecordedSets(), [tmp_path], 1)


def test_copies_for_training_are_at_every_speed_and_some_have_no_words() -> None:
    spoken = [Utterance("one", "LOW", tones(["LOW"], np.random.default_rng(0)), RATE)]
    config = SoundAugmentConfig(speeds=(0.5, 1.0, 2.0), noise=1.0, telephone=0.5, wordless=2)
    made = changed_frames(spoken, RATE, 20, config, 1, lambda *_: None)
    assert list(made.texts) == ["LOW", "LOW", "LOW", "", ""]
    whole = len(spoken[0].samples) / RATE * 100
    assert made.lengths[:3].tolist() == pytest.approx([2 * whole, whole, whole / 2], abs=2)
    assert np.isfinite(made.frames_NF).all()
    again = changed_frames(spoken, RATE, 20, config, 1, lambda *_: None)
    assert np.array_equal(made.frames_NF, again.frames_NF)
