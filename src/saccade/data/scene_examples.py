"""Drawn scenes as training examples: with a caption, or with a question and its answer."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from saccade.data.picture_texts import HeldOut, PictureTextParts, SceneTexts, Taken
from saccade.data.scene_captions import describe
from saccade.data.scene_drawing import SceneDrawer
from saccade.data.scene_layout import SIDE, Scene, SceneComposer
from saccade.data.scene_questions import ask_about
from saccade.sources.picture import PictureSource

SENTENCES = 20_000
"""Scenes whose texts are enough to learn a vocabulary from: there are few words."""
TRAINED, VALID, TEST = 0, 1, 2
"""Added to three times the seed: the parts share no scene."""


@dataclass(frozen=True)
class SceneExamples:
    """Scenes by number, each with one text. They are drawn when they are taken."""

    composer: SceneComposer
    drawer: SceneDrawer
    source: PictureSource
    """Brings them to the size that the model reads."""
    count: int
    asks: bool = False
    """Whether there is a question about each."""

    def __len__(self) -> int:
        return self.count

    def sentences(self) -> list[str]:
        return [part for number in range(SENTENCES) for part in self._texts(number, self.composer(number))[:2]]

    def take(self, numbers_B: np.ndarray) -> Taken:
        numbers = np.asarray(numbers_B).tolist()
        scenes = [self.composer(number) for number in numbers]
        texts = [self._texts(number, scene) for number, scene in zip(numbers, scenes, strict=True)]
        pictures = np.stack([self._picture(scene) for scene in scenes])
        return Taken(pictures, [asked for asked, _, _ in texts if asked], [text for _, text, _ in texts])

    def held_out(self, name: str) -> HeldOut:
        """All of an epoch, with the scenes themselves."""
        taken = self.take(np.arange(self.count))
        scenes = [self.composer(number) for number in range(self.count)]
        kinds = [self._texts(number, scene)[2] for number, scene in enumerate(scenes)] if self.asks else []
        return HeldOut(name, taken.pictures_BHWC, taken.questions, [[text] for text in taken.texts], scenes, kinds)

    def _texts(self, number: int, scene: Scene) -> tuple[str, str, str]:
        """The question, what is to be written, and the kind of question."""
        random = np.random.default_rng([self.composer.seed, 1, number])
        if not self.asks:
            return "", describe(scene, random), ""
        found = ask_about(scene, random)
        return found.text, found.answer, found.kind

    def _picture(self, scene: Scene) -> np.ndarray:
        pixels = self.drawer(scene)
        return pixels if self.source.size_HW == (SIDE, SIDE) else self.source.read(pixels).pixels_HWC


def scene_parts(data: SceneTexts, source: PictureSource, seed: int, *, asks: bool) -> PictureTextParts:
    """Scenes to train on, to choose by, and to test with: of combinations that are trained, and of others."""
    drawer = SceneDrawer.with_emoji()

    def part(which: int, count: int, combinations: Literal["trained", "held out"] = "trained") -> SceneExamples:
        composer = SceneComposer(3 * seed + which, combinations)
        return SceneExamples(composer, drawer, source, count, asks)

    def test() -> list[HeldOut]:
        names: tuple[Literal["trained", "held out"], ...] = ("trained", "held out")
        return [part(TEST, data.test, name).held_out(f"scenes, {name} combinations") for name in names]

    return PictureTextParts(
        lambda: part(TRAINED, data.count), lambda: [part(VALID, data.valid).held_out("scenes")], test
    )
