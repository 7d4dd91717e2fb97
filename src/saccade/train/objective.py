"""The loss of each kind of model, as sums and counts."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from saccade.arch.encoder_decoder import EncoderConfig
from saccade.arch.front_end import PictureFrontEnd
from saccade.arch.recurrent import RecurrentEncoderConfig
from saccade.arch.sound import SoundFrontEnd
from saccade.data.batches import SequenceBatch
from saccade.data.episodes import EpisodeBatch
from saccade.data.labelled import TaggedBatch, TextBatch
from saccade.data.permute import PermutedBatch
from saccade.data.picture_batches import PictureBatch
from saccade.data.rows import MaskedBatch
from saccade.data.sentences import UNKNOWN
from saccade.data.stream import LanguageBatch
from saccade.models.acting import acted_features
from saccade.models.bert import MaskedModel
from saccade.models.contract import AnyMemory, Memory
from saccade.models.encdec import EncoderDecoder
from saccade.models.gpt import LanguageModel
from saccade.models.heads import ClassifierModel, TaggerModel
from saccade.models.xlnet import Order, PermutationModel
from saccade.nn.watch import watch
from saccade.sites import COMMAND, SOURCE, WORLD
from saccade.train.alignment import AlignmentHead
from saccade.train.contract import Losses
from saccade.train.loss import cross_entropy


@dataclass(frozen=True)
class SequenceObjective:
    """Cross-entropy of each target token, given the source and the tokens before it, with label smoothing; perhaps
    mixed with the CTC loss of the encoder (Kim et al. 2017), or with the doubly stochastic term, which asks of all
    looks of a text together that each part of the picture is looked at about once (Xu et al. 2015, eq. 14)."""

    smoothing: float = 0.0
    ctc: float = 0.0
    """Share of the CTC loss."""
    blank: int = 0
    """The id that stands for nothing in CTC: a mark that is never written."""
    coverage: float = 0.0
    """Weight of the doubly stochastic term."""
    covered: str = SOURCE
    """The memory that is to be looked at as a whole."""
    aligned: AlignmentHead | None = None
    """A head that is taught to align (Garg et al. 2019)."""

    def count(self, batch: SequenceBatch) -> int:
        return _count(batch.labels_BT, batch.real_BT)

    def flops(self, model: nn.Module, batch: SequenceBatch) -> float:
        assert isinstance(model, EncoderDecoder)
        return 3 * model.flops(
            _read_positions(model, batch), self.count(batch)
        )  # backward costs twice the forward pass

    def __call__(self, model: nn.Module, batch: SequenceBatch) -> Losses:
        assert isinstance(model, EncoderDecoder)
        memory = model.read(batch.source, batch.source_mask)
        if self.coverage:
            return self._with_coverage(model, memory, batch)
        if self.aligned is not None:
            return self._with_alignment(self.aligned, model, memory, batch)
        features_BTD = model.decoder.features(batch.target_BT, memory)
        losses = _losses(*_real(features_BTD, batch.labels_BT, batch.real_BT), model.decoder.head, self.smoothing)
        if not self.ctc:
            return losses
        assert isinstance(memory, Memory)
        total, count = losses["loss"]
        alone = self._ctc(model, memory, batch)
        return losses | {"loss": ((1 - self.ctc) * total + self.ctc * alone, count), "ctc": (alone.detach(), count)}

    def _with_coverage(self, model: EncoderDecoder, memory: AnyMemory, batch: SequenceBatch) -> Losses:
        """Per text, weight · Σ_i (1 - Σ_t α_ti)², the layers and heads averaged."""
        with watch(model.decoder, gradients=True) as heard:
            features_BTD = model.decoder.features(batch.target_BT, memory)
        losses = _losses(*_real(features_BTD, batch.labels_BT, batch.real_BT), model.decoder.head, self.smoothing)
        weights_BTS = heard.of("cross", self.covered).mean(dim=(0, 2))
        if batch.real_BT is not None:
            weights_BTS = weights_BTS * batch.real_BT[..., None]
        total, count = losses["loss"]
        uncovered = (1 - weights_BTS.sum(dim=1)).square().sum()
        covering = {"coverage": (uncovered.detach(), len(weights_BTS))}
        return losses | {"loss": (total + self.coverage * uncovered, count)} | covering

    def _with_alignment(
        self, aligned: AlignmentHead, model: EncoderDecoder, memory: AnyMemory, batch: SequenceBatch
    ) -> Losses:
        # Only the layer of the head is heard: weights of all others would be computed for nothing.
        with watch(model.decoder.get_submodule(aligned.layer_name), gradients=True) as heard:
            features_BTD = model.decoder.features(batch.target_BT, memory)
        losses = _losses(*_real(features_BTD, batch.labels_BT, batch.real_BT), model.decoder.head, self.smoothing)
        total, count = losses["loss"]
        apart, tokens = aligned.loss(heard, batch)
        return losses | {"loss": (total + aligned.weight * apart, count), "alignment": (apart.detach(), max(1, tokens))}

    def _ctc(self, model: EncoderDecoder, memory: Memory, batch: SequenceBatch) -> Tensor:
        """Texts that have more letters than there are columns count nothing."""
        logits_MWV, columns_M = model.columns(memory)
        logprobs_WMV = logits_MWV.float().log_softmax(dim=-1).transpose(0, 1)
        real_BT = torch.ones_like(batch.labels_BT, dtype=torch.bool) if batch.real_BT is None else batch.real_BT
        lengths_B = real_BT.sum(dim=1) - 1  # without the end mark
        return F.ctc_loss(
            *(logprobs_WMV, batch.labels_BT, columns_M, lengths_B),
            blank=self.blank, reduction="sum", zero_infinity=True,
        )  # fmt: skip


@dataclass(frozen=True)
class EpisodeObjective:
    """Cross-entropy of each action of a demonstration, given the command, what was done before, and what is seen."""

    smoothing: float = 0.0

    def count(self, batch: EpisodeBatch) -> int:
        return int(batch.real_BT.sum())

    def flops(self, model: nn.Module, batch: EpisodeBatch) -> float:
        assert isinstance(model, EncoderDecoder)
        views, front = self.count(batch), model.config.readers[WORLD].front_end
        assert isinstance(front, PictureFrontEnd)
        positions = {COMMAND: _count(batch.source_BS, batch.source_mask_BS), WORLD: views * front.length}
        return 3 * model.flops(positions, views)

    def __call__(self, model: nn.Module, batch: EpisodeBatch) -> Losses:
        assert isinstance(model, EncoderDecoder)
        pictures_NHWC = batch.views_BTHWC[batch.real_BT].float() / 255
        features_BTE = acted_features(
            model, (batch.source_BS, batch.source_mask_BS), pictures_NHWC, batch.real_BT, batch.target_BT
        )
        return _losses(*_real(features_BTE, batch.labels_BT, batch.real_BT), model.decoder.head, self.smoothing)


@dataclass(frozen=True)
class LanguageObjective:
    """Cross-entropy of each token given those before it in its window."""

    smoothing: float = 0.0

    def count(self, batch: LanguageBatch) -> int:
        return _count(batch.labels_BT, batch.real_BT)

    def flops(self, model: nn.Module, batch: LanguageBatch) -> float:
        assert isinstance(model, LanguageModel)
        return 3 * model.flops(self.count(batch))

    def __call__(self, model: nn.Module, batch: LanguageBatch) -> Losses:
        assert isinstance(model, LanguageModel)
        features_BTD = model.features(batch.tokens_BT, batch.documents_BT)
        return _losses(*_real(features_BTD, batch.labels_BT, batch.real_BT), model.decoder.head, self.smoothing)


@dataclass(frozen=True)
class MaskedObjective:
    """Cross-entropy of each masked token; if the model predicts next sentences, plus the cross-entropy of these. The
    two means have equal weight (Devlin et al. 2018)."""

    def count(self, batch: MaskedBatch) -> int:
        return len(batch.labels_N)

    def flops(self, model: nn.Module, batch: MaskedBatch) -> float:
        assert isinstance(model, MaskedModel)
        return 3 * model.flops(_count(batch.tokens_BT, batch.mask_BT), self.count(batch))

    def __call__(self, model: nn.Module, batch: MaskedBatch) -> Losses:
        assert isinstance(model, MaskedModel)
        memory = model.encoder(batch.tokens_BT, batch.mask_BT, batch.segments_BT)
        count = self.count(batch)
        features_ND = model.words.features(memory.states_MSD[batch.chosen_BT])
        words, _ = cross_entropy(features_ND, model.words.head, batch.labels_N, 0.0)
        logits_B2 = model.following(memory)
        if logits_B2 is None:
            return {"loss": (words, count)}
        known_B = batch.next_sentence_B != UNKNOWN
        next_sentence = F.cross_entropy(logits_B2.float(), batch.next_sentence_B, ignore_index=UNKNOWN, reduction="sum")
        next_sentence = next_sentence * (count / max(1, int(known_B.sum())))
        return {
            "loss": (words + next_sentence, count),
            "words": (words, count),
            "next_sentence": (next_sentence, count),
        }


@dataclass(frozen=True)
class PermutedObjective:
    """Cross-entropy of each target, given the words before it in its row's order."""

    def count(self, batch: PermutedBatch) -> int:
        return _count(batch.labels_BK, batch.real_BK)

    def flops(self, model: nn.Module, batch: PermutedBatch) -> float:
        assert isinstance(model, PermutationModel)
        return 3 * model.flops(_count(batch.tokens_BT, batch.mask_BT), self.count(batch))

    def __call__(self, model: nn.Module, batch: PermutedBatch) -> Losses:
        assert isinstance(model, PermutationModel)
        order = Order(batch.places_BT, batch.targets_BK)
        query_BKD = model.features(batch.tokens_BT, order, mask_BT=batch.mask_BT).query_BKD
        return _losses(*_real(query_BKD, batch.labels_BK, batch.real_BK), model.head, 0.0)


@dataclass(frozen=True)
class ClassObjective:
    """Cross-entropy of each text's class; with a single output, its squared error."""

    smoothing: float = 0.0

    def count(self, batch: TextBatch) -> int:
        return len(batch.labels_B)

    def flops(self, model: nn.Module, batch: TextBatch) -> float:
        return _encoder_flops(model, batch.tokens_BT, batch.mask_BT)

    def __call__(self, model: nn.Module, batch: TextBatch) -> Losses:
        assert isinstance(model, ClassifierModel)
        features_BD = model.features(batch.tokens_BT, batch.mask_BT, batch.segments_BT)
        if model.head.out_features > 1:
            return _losses(features_BD, batch.labels_B, model.head, self.smoothing)
        found_B = model.head(features_BD)[:, 0]
        return {"loss": ((found_B - batch.labels_B).square().sum(), self.count(batch))}


@dataclass(frozen=True)
class PictureObjective:
    """Cross-entropy of each picture's class; of a mixture, of both classes by their shares."""

    smoothing: float = 0.0

    def count(self, batch: PictureBatch) -> int:
        return len(batch.labels_B)

    def flops(self, model: nn.Module, batch: PictureBatch) -> float:
        assert isinstance(model, ClassifierModel)
        front = getattr(model.encoder, "config").front_end  # noqa: B009
        return 3 * model.encoder.flops(front.length) * self.count(batch)

    def __call__(self, model: nn.Module, batch: PictureBatch) -> Losses:
        assert isinstance(model, ClassifierModel)
        logits_BC = model(batch.pictures_BHWC).float()

        def loss(labels_B: Tensor) -> Tensor:
            return F.cross_entropy(logits_BC, labels_B, label_smoothing=self.smoothing, reduction="sum")

        total = loss(batch.labels_B)
        if batch.others_B is not None:
            total = batch.share * total + (1 - batch.share) * loss(batch.others_B)
        return {"loss": (total, self.count(batch))}


@dataclass(frozen=True)
class TagObjective:
    """Cross-entropy of each word's tag."""

    smoothing: float = 0.0

    def count(self, batch: TaggedBatch) -> int:
        return len(batch.labels_N)

    def flops(self, model: nn.Module, batch: TaggedBatch) -> float:
        return _encoder_flops(model, batch.tokens_BT, batch.mask_BT)

    def __call__(self, model: nn.Module, batch: TaggedBatch) -> Losses:
        assert isinstance(model, TaggerModel)
        features_ND = model.features(batch.tokens_BT, batch.mask_BT, batch.words_BT)
        return _losses(features_ND, batch.labels_N, model.head, self.smoothing)


def _encoder_flops(model: nn.Module, tokens_BT: Tensor, mask_BT: Tensor | None) -> float:
    assert isinstance(model, ClassifierModel | TaggerModel)
    return 3 * model.encoder.flops(_count(tokens_BT, mask_BT))


def _read_positions(model: EncoderDecoder, batch: SequenceBatch) -> dict[str, int]:
    """How many positions each encoder reads."""
    given = batch.source
    sources = {SOURCE: (given, batch.source_mask)} if isinstance(given, Tensor) else given
    readers = model.config.readers
    return {name: _positions(readers[name], values, mask) for name, (values, mask) in sources.items()}


def _positions(reader: EncoderConfig, values: Tensor, mask: Tensor | None) -> int:
    front = reader.front_end
    if isinstance(front, PictureFrontEnd):
        return len(values) * front.length
    halvings = reader.pyramid if isinstance(reader, RecurrentEncoderConfig) else 0
    if isinstance(front, SoundFrontEnd):
        return _count(values[..., 0], mask) // front.shrinks >> halvings
    return _count(values, mask) >> halvings


def _count(ids_BT: Tensor, real_BT: Tensor | None) -> int:
    """How many positions are no padding."""
    return ids_BT.numel() if real_BT is None else int(real_BT.sum())


def _real(features_BTD: Tensor, labels_BT: Tensor, real_BT: Tensor | None) -> tuple[Tensor, Tensor]:
    """Real positions only: padding never reaches the output layer, the widest of all."""
    if real_BT is None or real_BT.all():  # as in windows of a stream: nothing is copied, forth or back
        return features_BTD.flatten(0, 1), labels_BT.flatten()
    return features_BTD[real_BT], labels_BT[real_BT]


def _losses(features_ND: Tensor, labels_N: Tensor, head: nn.Linear, smoothing: float) -> Losses:
    loss, nll = cross_entropy(features_ND, head, labels_N, smoothing)
    count = labels_N.shape[0]
    return {"loss": (loss, count), "nll": (nll, count)} if smoothing else {"loss": (loss, count)}
