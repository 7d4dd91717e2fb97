"""The command that writes down what is said: transcribe."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from saccade.cli.asking import MOST_ANSWERS, LookingOptions, answer_all
from saccade.cli.names import ModelName
from saccade.errors import WrongUse
from saccade.pipelines.table import TASKS

if TYPE_CHECKING:
    from saccade.pipelines.pipeline import Request
    from saccade.runtime.contract import How


@Parameter(name="*")
@dataclass(frozen=True)
class ListeningOptions(LookingOptions):
    """Options of transcribe."""

    look: Annotated[Path | None, Parameter(show_default=False)] = None
    "Draw where each letter was heard, over the spectrogram: into FILE.png, FILE.svg or FILE.html, or in the terminal."
    beam: int | None = None
    "Beam width; 1 is greedy search. Default: the model's setting."
    best: int = 1
    "Number of texts per recording, each with its confidence."
    format: Literal["text", "json", "srt", "vtt"] = "text"
    "json: one object per line, with the times and the confidence of every word; srt, vtt: subtitles."
    exact: Annotated[bool, Parameter(negative="")] = False
    "Compute in fp32 instead of the fastest near-lossless format (see saccade doctor)."

    @property
    def pages(self) -> tuple[str, ...]:
        return (".html",)

    @property
    def how(self) -> "How | None":
        return "exact" if self.exact else None

    def request(self) -> "Request":
        """Checked here, before anything is loaded."""
        if self.beam is not None and self.beam < 1:
            raise WrongUse(f"--beam must be at least 1, not {self.beam}")
        if not 1 <= self.best <= MOST_ANSWERS:
            raise WrongUse(f"--best must be between 1 and {MOST_ANSWERS}, not {self.best}")
        if self.best > 1 and self.format in ("srt", "vtt"):
            raise WrongUse(f"--best goes with text or json; {self.format} holds one text")
        from saccade.pipelines.pipeline import Request

        return Request(beam=self.beam, best=self.best)


LISTENING = ListeningOptions()


def transcribe(*files: str, model: ModelName = TASKS["speech"].model, options: ListeningOptions = LISTENING) -> int:
    """Write down what is said in recordings: files, folders or globs; - is a file on standard input.

    Recordings of any sampling rate and number of channels, of at most 30 minutes each; longer than nine seconds, they
    are cut at pauses. Silence gives no text. Words that the model is not sure of are named on standard error.

    For example:

        saccade train an4 --out my-listener
        saccade transcribe speech.wav --model my-listener
        saccade transcribe speech.mp3 --model my-listener --format srt -o speech.srt
        saccade transcribe speech.flac --model my-listener --look letters.png
        saccade transcribe "recordings/*.wav" --model my-listener --format json -o texts.jsonl
        arecord -f S16_LE -r 16000 -d 5 | saccade transcribe - --model my-listener

    Parameters
    ----------
    files:
        Recordings: WAV, FLAC, Ogg, MP3.
    model:
        Folder of a model trained for speech.
    """
    if not model:
        raise WrongUse(
            "no listener is bundled: train one (saccade train an4 --out my-listener), then transcribe with "
            "--model my-listener"
        )
    return answer_all(files, model, options, TASKS["speech"])
