"""What drawn scenes are made of: things with the words for them, and grounds they stand on."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Thing:
    """A kind of thing."""

    glyph: str
    """Its character in an emoji font."""
    names: tuple[tuple[str, str], ...]
    """Words for one and for several of it; the first are those that answers use."""

    @property
    def name(self) -> str:
        return self.names[0][0]


@dataclass(frozen=True)
class Ground:
    """What the things stand on."""

    names: tuple[str, ...]
    """Words for it; the first is the one that answers use."""
    colour: tuple[int, int, int]


def _thing(glyph: str, *names: str) -> Thing:
    """A plural is written after a slash, unless it ends in a mere s."""
    pairs = (name.partition("/")[::2] for name in names)
    return Thing(glyph, tuple((one, several or f"{one}s") for one, several in pairs))


THINGS = (
    _thing("🐱", "cat", "kitten"),
    _thing("🐶", "dog", "puppy/puppies"),
    _thing("🐭", "mouse/mice"),
    _thing("🐷", "pig"),
    _thing("🐸", "frog"),
    _thing("🦁", "lion"),
    _thing("🐼", "panda"),
    _thing("🐘", "elephant"),
    _thing("🐢", "turtle"),
    _thing("🐙", "octopus/octopuses"),
    _thing("🦋", "butterfly/butterflies"),
    _thing("🐝", "bee"),
    _thing("🐟", "fish/fish"),
    _thing("🦆", "duck"),
    _thing("🦉", "owl"),
    _thing("🐍", "snake"),
    _thing("🌲", "tree", "fir"),
    _thing("🌵", "cactus/cacti"),
    _thing("🌻", "sunflower"),
    _thing("🌹", "rose"),
    _thing("🍄", "mushroom", "toadstool"),
    _thing("🍎", "apple"),
    _thing("🍌", "banana"),
    _thing("🍓", "strawberry/strawberries"),
    _thing("🍉", "melon"),
    _thing("🍋", "lemon"),
    _thing("🥕", "carrot"),
    _thing("🍞", "loaf/loaves"),
    _thing("🍕", "pizza"),
    _thing("🎂", "cake"),
    _thing("🚗", "car", "automobile"),
    _thing("🚌", "bus/buses"),
    _thing("🚲", "bicycle", "bike"),
    _thing("🚀", "rocket"),
    _thing("⛵", "boat", "sailboat"),
    _thing("🏠", "house", "home"),
    _thing("⚽", "football", "ball"),
    _thing("🎸", "guitar"),
    _thing("🥁", "drum"),
    _thing("🎈", "balloon"),
    _thing("🔑", "key"),
    _thing("⏰", "clock"),
    _thing("📷", "camera"),
    _thing("💡", "lamp", "bulb"),
    _thing("👑", "crown"),
    _thing("🎩", "hat"),
    _thing("👞", "shoe"),
    _thing("⭐", "star"),
)
"""No two of them look alike. A word names one thing only."""
GROUNDS = (
    Ground(("grass", "meadow"), (126, 190, 92)),
    Ground(("sand", "beach"), (232, 208, 146)),
    Ground(("snow",), (240, 244, 250)),
    Ground(("water", "sea"), (96, 160, 214)),
    Ground(("earth", "soil"), (150, 108, 74)),
    Ground(("stone", "pavement"), (150, 150, 154)),
)
