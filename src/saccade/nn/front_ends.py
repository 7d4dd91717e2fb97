"""All front ends that are not token vectors."""

from saccade.nn.convolutions import PictureConvolutions
from saccade.nn.front_end import Patches
from saccade.nn.sound import SoundFrames

AnyFrontEnd = Patches | PictureConvolutions | SoundFrames
"""What reads pictures or sounds."""
