"""Labelled pictures -> batches to train on."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from saccade.data.picture_augment import PictureAugmenter, mixed
from saccade.data.picture_sets import Pictures


@dataclass(frozen=True)
class PictureBatch:
    """Pictures and their classes, perhaps each mixed with another one."""

    pictures_BHWC: Tensor
    """float32 from 0 to 1."""
    labels_B: Tensor
    others_B: Tensor | None = None
    """The classes of the pictures that these were mixed with."""
    share: float = 1.0
    """Of the first class; the rest is the other's."""


def picture_batch(pictures: Pictures, numbers_B: np.ndarray, augmenter: PictureAugmenter) -> PictureBatch:
    """`numbers_B` count on from epoch to epoch: each is a picture and an epoch."""
    places_B = numbers_B % len(pictures)
    values = augmenter(pictures.pixels_NHWC[places_B], numbers_B)
    labels = pictures.labels_N[places_B]
    if not augmenter.config.mix:
        return PictureBatch(torch.from_numpy(values), torch.from_numpy(labels))
    found = mixed(values, augmenter.random(numbers_B), augmenter.config.mix)
    others = torch.from_numpy(labels[found.order_B])
    return PictureBatch(torch.from_numpy(found.values_BHWC), torch.from_numpy(labels), others, found.share)
