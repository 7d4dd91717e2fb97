"""From samples to log-mel energies, by kaldi-native-fbank, and their normalisation within a recording."""

import numpy as np

from saccade.errors import UserError

STEP = 0.01
"""Seconds from frame to frame; each hears 25 milliseconds."""
RANGE = 16.0
"""Natural logarithms below the loudest energy, 70 dB: what is fainter is silence. So a band that a telephone left out
is the same in all recordings."""
STEADY = 1.0
"""Smallest deviation that is divided by: a bin that hardly changes is not blown up."""
SHORTEST = 0.03
"""Seconds: shorter sounds are filled up with silence."""


def log_mel(samples: np.ndarray, rate: int, mels: int) -> np.ndarray:
    """Natural logarithms of energies [T, mels], a frame every 10 milliseconds, its middle at (t + 0.5) steps."""
    try:
        import kaldi_native_fbank as kaldi
    except ImportError:
        raise UserError("sounds are read with kaldi-native-fbank: pip install kaldi-native-fbank") from None
    options = kaldi.FbankOptions()
    options.frame_opts.samp_freq = rate
    options.frame_opts.dither = 0  # the same sound, the same numbers
    options.frame_opts.snip_edges = False
    options.mel_opts.num_bins = mels
    missing = int(SHORTEST * rate) - len(samples)
    whole = np.pad(samples, (0, missing)) if missing > 0 else samples
    bank = kaldi.OnlineFbank(options)
    bank.accept_waveform(rate, whole.astype(np.float32) * np.float32(32768))
    bank.input_finished()
    return np.stack([bank.get_frame(frame) for frame in range(bank.num_frames_ready)])


def normalised(frames_TF: np.ndarray) -> np.ndarray:
    """Each bin with mean 0 and deviation 1 over the recording, cut off below the loudest by `RANGE`; float32."""
    cut_TF = np.maximum(frames_TF, frames_TF.max() - RANGE)
    deviation_F = np.maximum(cut_TF.std(axis=0), STEADY)
    return np.asarray((cut_TF - cut_TF.mean(axis=0)) / deviation_F, dtype=np.float32)
