"""The table of tasks and their verbs. Free of torch, so that help is instant."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from saccade.sources.source import Source

TEXT = "saccade.sources.text:TextSource"
PAIR = "saccade.sources.pair:PairSource"
PICTURE = "saccade.sources.picture:PictureSource"
SOUND = "saccade.sources.sound:SoundSource"
PICTURE_QUESTION = "saccade.sources.picture_question:PictureQuestionSource"


@dataclass(frozen=True)
class TaskRow:
    """A task as the command line knows it before anything heavy is loaded."""

    name: str
    verb: str
    home: str
    """module:class of the task, which trains"""
    pipeline: str
    """module:class of what answers"""
    model: str
    """The bundled model its verb uses by default."""
    help: str
    takes: str
    """module:class of the source: what its verb takes, text or files of some kind"""
    files: str
    """What `saccade train TASK FILES` takes."""
    limits: Mapping[str, Any] = field(default_factory=dict)
    """Of an input, as the source has them."""
    keeps: bool = False
    """An answer is its input with other words: line ends, blank lines and lines that cannot be read stay."""

    @cached_property
    def source(self) -> "Source[Any, Any]":
        """What is read, before any model is loaded: it knows the limits, and no vocabulary."""
        module, _, attribute = self.takes.partition(":")
        found: Source[Any, Any] = getattr(import_module(module), attribute)(**self.limits)
        return found


TASKS = {
    row.name: row
    for row in [
        TaskRow(
            name="translation",
            verb="translate",
            home="saccade.tasks.translation:TranslationTask",
            pipeline="saccade.pipelines.translator:Translator",
            model="en-es",
            help="Translate texts.",
            takes=TEXT,
            limits={"longest": 100_000},
            files="a table of source and target (.tsv, .csv, .jsonl), or two files whose lines translate each other",
        ),
        TaskRow(
            name="language",
            verb="complete",
            home="saccade.tasks.language:LanguageTask",
            pipeline="saccade.pipelines.completer:Completer",
            model="stories",
            help="Go on with a text.",
            takes=TEXT,
            limits={"longest": 1_000_000},
            files="one or more texts",
        ),
        TaskRow(
            name="correction",
            verb="correct",
            home="saccade.tasks.correction:CorrectionTask",
            pipeline="saccade.pipelines.corrector:Corrector",
            model="speller",
            help="Mend misspellings.",
            takes=TEXT,
            limits={"longest": 1_000_000},
            files="nothing: it is trained by a recipe",
            keeps=True,
        ),
        TaskRow(
            name="pronunciation",
            verb="pronounce",
            home="saccade.tasks.pronunciation:PronunciationTask",
            pipeline="saccade.pipelines.pronouncer:Pronouncer",
            model="pronouncer",
            help="Say how words are pronounced.",
            takes=TEXT,
            limits={"longest": 100_000},
            files="nothing: it is trained by a recipe",
            keeps=True,
        ),
        TaskRow(
            name="masked",
            verb="fill",
            home="saccade.tasks.masked:MaskedTask",
            pipeline="saccade.pipelines.filler:Filler",
            model="bert-mini",
            help="Fill gaps in a text.",
            takes=TEXT,
            limits={"longest": 20_000},
            files="one or more texts, with blank lines between documents",
        ),
        TaskRow(
            name="classification",
            verb="classify",
            home="saccade.tasks.classification:ClassificationTask",
            pipeline="saccade.pipelines.classifier:Classifier",
            model="",
            help="Say of what class a text is.",
            takes=PAIR,
            limits={"longest": 100_000},
            files="a table (.tsv, .csv, .jsonl) with a column of texts and one of labels; one more to test with, or "
            "two more, to choose by and to test with",
        ),
        TaskRow(
            name="tagging",
            verb="tag",
            home="saccade.tasks.tagging:TaggingTask",
            pipeline="saccade.pipelines.tagger:Tagger",
            model="tagger",
            help="Tag the words of sentences.",
            takes=TEXT,
            limits={"longest": 100_000},
            files="a CoNLL-U file to train on, one to choose by, and, if there is one, a third to test with",
        ),
        TaskRow(
            name="pictures",
            verb="see",
            home="saccade.tasks.pictures:PicturesTask",
            pipeline="saccade.pipelines.picture_classifier:PictureClassifier",
            model="",
            help="Say what is in pictures.",
            takes=PICTURE,
            files="a folder with a folder of pictures for each class",
        ),
        TaskRow(
            name="reading",
            verb="read",
            home="saccade.tasks.reading:ReadingTask",
            pipeline="saccade.pipelines.word_reader:WordReader",
            model="",
            help="Read what is written in pictures.",
            takes=PICTURE,
            limits={"channels": 1},
            files="a table of picture files and their texts (labels.tsv), a word a line",
        ),
        TaskRow(
            name="captioning",
            verb="caption",
            home="saccade.tasks.captioning:CaptioningTask",
            pipeline="saccade.pipelines.captioner:Captioner",
            model="",
            help="Tell what pictures show.",
            takes=PICTURE,
            files="a table of picture files and sentences about them (captions.tsv)",
        ),
        TaskRow(
            name="questions",
            verb="answer",
            home="saccade.tasks.questions:QuestionsTask",
            pipeline="saccade.pipelines.questioner:Questioner",
            model="",
            help="Answer questions about pictures.",
            takes=PICTURE_QUESTION,
            files="a table of picture files, questions and answers (questions.tsv)",
        ),
        TaskRow(
            name="speech",
            verb="transcribe",
            home="saccade.tasks.speech:SpeechTask",
            pipeline="saccade.pipelines.transcriber:Transcriber",
            model="",
            help="Write down what is said in recordings.",
            takes=SOUND,
            files="a table of sound files and what is said in them (clips.tsv)",
        ),
        TaskRow(
            name="walking",
            verb="walk",
            home="saccade.tasks.walking:WalkingTask",
            pipeline="saccade.pipelines.walker:Walker",
            model="walker",
            help="Follow commands in words.",
            takes=TEXT,
            limits={"longest": 10_000},
            files="a table of commands and their actions, which stand between spaces (.tsv, .csv, .jsonl)",
        ),
        TaskRow(
            name="routes",
            verb="walk",
            home="saccade.tasks.routes:RoutesTask",
            pipeline="saccade.pipelines.route_walker:RouteWalker",
            model="",
            help="Walk through a maze by directions.",
            takes=TEXT,
            limits={"longest": 10_000},
            files="nothing: it is trained by a recipe",
        ),
        TaskRow(
            name="acting",
            verb="act",
            home="saccade.tasks.acting:ActingTask",
            pipeline="saccade.pipelines.agent:Agent",
            model="",
            help="Act in worlds of pictures.",
            takes=PICTURE_QUESTION,
            files="nothing: it is trained by a recipe",
        ),
    ]
}
