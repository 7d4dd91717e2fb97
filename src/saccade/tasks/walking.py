"""Walking: commands in words in, actions out (listen, attend and walk; Mei et al. 2016), as in SCAN."""

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Literal

from pydantic import Field, model_validator

from saccade.arch.encoder_decoder import EncoderDecoderConfig
from saccade.carried import CarriedTest
from saccade.data.copies import Copies
from saccade.data.scan import check_command
from saccade.data.sources import Mixture, spread
from saccade.data.split import hold_out, write_pairs
from saccade.data.text import Pair, find, read_pairs
from saccade.errors import UserError, WrongUse
from saccade.evaluate.metrics import Score
from saccade.evaluate.walking import actions_right, exact_match
from saccade.folder import ModelFolder
from saccade.pipelines.pipeline import Report, Request, unreported
from saccade.pipelines.table import TASKS
from saccade.pipelines.walker import Language, Walker, known_words, plain_words
from saccade.tasks.arithmetic import Figure
from saccade.tasks.contract import Prepared, Recipe
from saccade.tasks.sequence import SequenceData, SequenceParts, SequenceRecipe, answered, by_source, prepare_pairs
from saccade.tokens.vocabulary import TokensConfig
from saccade.train.loop import TrainConfig
from saccade.train.optim import AdamConfig


class CommandsData(SequenceData):
    """Tables of commands and their actions, which stand between spaces."""

    split: str = ""
    """Stands for {split} in the names of files: one recipe for several ways to split the same data."""
    train: list[str] = Field(min_length=1)
    """Training files."""
    valid: list[str] = Field(default_factory=list)
    """Validation files: they select the best checkpoint."""
    validated: int = Field(0, ge=0)
    """Instead of `valid`: so many of the training commands select the best checkpoint. They are trained on, too: where
    the test part differs from training in kind, as in SCAN, held-out commands of training say nothing about it."""
    test: list[str] = Field(default_factory=list)
    """Test files, used for the final score and by `saccade evaluate`."""
    language: Language = ""
    """The grammar of the commands: others are refused. Empty: any command of known words is tried."""

    @model_validator(mode="after")
    def _something_selects(self) -> "CommandsData":
        if bool(self.valid) == (self.validated > 0):
            raise ValueError("give either data.valid, files, or data.validated, a number of training commands")
        return self

    def files(self, part: Literal["train", "valid", "test"]) -> list[str]:
        """The names of a part's files."""
        return [name.replace("{split}", self.split) for name in getattr(self, part)]


class WalkingRecipe(SequenceRecipe):
    task: Literal["walking"] = "walking"
    data: CommandsData
    tokens: TokensConfig = TokensConfig(kind="words")


class WalkingTask:
    """The task of walking, for the commands."""

    name: ClassVar[str] = "walking"
    recipe: ClassVar[type[Recipe]] = WalkingRecipe

    def recipe_for(self, files: Sequence[Path], out: Path) -> tuple[WalkingRecipe, list[str]]:
        """Hold out a part; two layers each, with rotary positions."""
        if len(files) not in (1, 2):
            raise WrongUse(f"walking takes {TASKS[self.name].files}; {len(files)} files were given")
        parts = dict(zip(("train", "valid", "test"), hold_out(_plain(read_pairs(files))), strict=True))
        for part, pairs in parts.items():
            write_pairs(out / f"{part}.tsv", pairs)
        stack = {"layers": 2, "width": 128, "heads": 4, "feedforward": 256, "positions": {"kind": "rotary"}}
        steps = min(6000, max(500, len(parts["train"])))
        recipe = WalkingRecipe(
            name=out.name,
            data=CommandsData.read({part: [str((out / f"{part}.tsv").resolve())] for part in parts}, where="walking"),
            model=EncoderDecoderConfig.read({"encoder": stack, "decoder": stack}, where="walking"),
            train=TrainConfig(
                steps=steps,
                warmup=steps // 10,
                validate_every=max(1, steps // 10),
                select_by="exact",
                adam=AdamConfig(rate=2e-3),
            ),
        )
        counts = {part: len(pairs) for part, pairs in parts.items()}
        return recipe, [
            f"{sum(counts.values()):,} commands: {counts['train']:,} to train on, {counts['valid']:,} to choose by, "
            f"{counts['test']:,} to test with; written to {out}/{{train,valid,test}}.tsv",
            f"model: 2+2 layers, 128 wide, rotary positions; {steps:,} steps",
        ]

    def prepare(
        self,
        recipe: WalkingRecipe,
        folders: Sequence[Path],
        out: Path,
        *,
        resume: bool,
        report: Report = unreported,
    ) -> Prepared:
        data = recipe.data
        training = _read(data.files("train"), folders, data.language)
        held = _read(data.files("valid"), folders, data.language) if data.valid else spread(training, data.validated)
        tested = _read(data.files("test"), folders, data.language)
        parts = SequenceParts(
            training=lambda: Copies(Mixture.of(training)),
            held={"": held},
            figures=_figures,
            figure=lambda pipeline: _figure(pipeline, held),
            files=[*data.files("train"), *data.files("valid"), *data.files("test")],
            settings={"words": known_words(command for command, _ in training), "language": data.language},
            test=(lambda pipeline, _, report: _scores(pipeline, tested, Request(), report)) if tested else None,
            carried=(lambda: _carried(tested)) if tested else None,
        )
        return prepare_pairs(recipe, parts, out, resume=resume, report=report)

    def evaluate(
        self,
        pipeline: Walker,
        folder: ModelFolder,
        files: Sequence[Path],
        folders: Sequence[Path],
        request: Request,
        *,
        lowercase: bool | None = None,
        report: Report = unreported,
    ) -> list[Score]:
        """Exact match, actions in their place, and, apart from these, exact match where the length is told."""
        data = CommandsData.read(folder.table("data"), where=str(folder.path / "config.json"))
        if not files and not data.test:
            raise WrongUse(f"{folder.path}: names no test part; give files: saccade evaluate MODEL FILES")
        names = [str(file.resolve()) for file in files] or data.files("test")
        return _scores(pipeline, _read(names, folders, data.language), request, report)


def _figures(sources: list[str], outputs: list[str], accepted: list[list[str]]) -> dict[str, float]:  # noqa: ARG001
    done, right = [output.split() for output in outputs], [[one.split() for one in some] for some in accepted]
    return {"exact": exact_match(done, right, bootstrap=0).value}


def _figure(pipeline: Walker, pairs: Sequence[Pair]) -> Figure:
    right = _scores(pipeline, pairs, Request(), unreported)[0]
    return Figure(right.name, right.value)


def _scores(pipeline: Walker, pairs: Sequence[Pair], request: Request, report: Report) -> list[Score]:
    commands, accepted = by_source(pairs)
    truths = [[one.split() for one in some] for some in accepted]
    done = [walk.actions for walk in answered(pipeline, commands, request, report)]
    told = pipeline.with_lengths(commands, [len(some[0]) for some in truths])
    return [
        exact_match(done, truths),
        actions_right(done, truths),
        exact_match(told, truths, name="exact match where the length is told (oracle)"),
    ]


def _carried(pairs: Sequence[Pair]) -> CarriedTest:
    return CarriedTest("test.tsv.xz", "".join(f"{command}\t{actions}\n" for command, actions in pairs))


def _read(names: Sequence[str], folders: Sequence[Path], language: Language) -> list[Pair]:
    """Commands in plain words, and their actions. What a grammar does not know is an error that names the file."""
    pairs: list[Pair] = []
    for name in names:
        path = find(name, folders)
        some = _plain(read_pairs([path]))
        for number, (command, _) in enumerate(some, 1) if language else ():
            try:
                check_command(command)
            except UserError as error:
                raise UserError(f"{path}, command {number}: {error}") from None
        pairs += some
    return pairs


def _plain(pairs: Sequence[Pair]) -> list[Pair]:
    plain = ((" ".join(plain_words(command)), " ".join(actions.split())) for command, actions in pairs)
    return [(command, actions) for command, actions in plain if command and actions]
