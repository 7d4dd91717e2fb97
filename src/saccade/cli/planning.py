"""What `saccade plan` does with its arguments: names -> models, options -> devices, plans -> text, pictures, pages."""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from saccade.cli.output import answers_to
from saccade.config import changed, read_setting, read_toml
from saccade.errors import UserError, WrongUse, did_you_mean
from saccade.folder import replace_file
from saccade.look.shapes import to_png, to_svg
from saccade.look.sheet import Bars, draw_bars, draw_table
from saccade.plan.budget import affordable, device_hours
from saccade.plan.compute import training_flops
from saccade.plan.described import folder_subject, recipe_subject
from saccade.plan.devices import DEVICES, DeviceRecord, device_named
from saccade.plan.page import page
from saccade.plan.plan import Plan, Wishes
from saccade.plan.published import comparison
from saccade.plan.subject import Subject
from saccade.plan.text import affordable_text, markdown, plan_rows, plan_text, short, short_bytes
from saccade.presets.rows import PRESETS

LECTURES = "lectures"
"""Stands for all rows of the lectures' table."""
PUBLISHED = "published"
"""Stands for the table of published runs."""
Format = Literal["text", "json", "markdown"]
Changes = list[tuple[str, Any]]


def changes_by_part(settings: Sequence[str]) -> Changes:
    """What --set says; keys are of the model or of the device."""
    found = [read_setting(setting) for setting in settings]
    for key, _ in found:
        if key.partition(".")[0] not in ("model", "device"):
            raise WrongUse(f"--set {key}: a plan has keys of the model (model.…) and of the device (device.…)")
    return found


def device_for(name: str, price: float | None, changes: Changes) -> DeviceRecord:
    """A row of the table with the user's own figures."""
    own = [(key, value) for key, value in changes if key.startswith("device.")]
    own += [("device.price", price)] if price is not None else []
    table = changed({"device": device_named(name).table()}, own)["device"]
    return DeviceRecord.read(table, where=f"device {name}")


def subjects_for(names: Sequence[str], changes: Changes, context: int | None) -> list[Subject]:
    """What is planned: presets, recipes and model folders by name."""
    own = [(key, value) for key, value in changes if key.startswith("model.")]
    expanded = [
        each
        for name in names
        for each in ([row.name for row in PRESETS.values() if row.lectures] if name == LECTURES else [name])
    ]
    found = [_subject(name, own) for name in expanded]
    return [subject.with_context(context) if context else subject for subject in found]


def _subject(name: str, changes: Changes) -> Subject:
    if name in PRESETS:
        return Subject.of(PRESETS[name].changed(changes))
    path = _recipe(name)
    if path is not None:
        return recipe_subject(path.stem, changed(read_toml(path), changes))
    from saccade.pipelines.load import bundled_models, load

    bundled = [folder.name for folder in bundled_models()]
    if name not in bundled and not Path(name).is_dir():
        known = [*PRESETS, *bundled, LECTURES]
        raise WrongUse(
            f"no preset, recipe or model folder {name!r}{did_you_mean(name, known)}; `saccade plan` lists the presets"
        )
    if changes:
        raise WrongUse(f"--set {changes[0][0]}: {name} is a trained model; its sizes are what they are")
    pipeline = load(name, "exact")
    return folder_subject(name, pipeline.model.config, len(pipeline.vocabulary))


def _recipe(name: str) -> Path | None:
    if name.endswith(".toml"):
        if not Path(name).is_file():
            raise UserError(f"{name}: no such recipe file")
        return Path(name)
    bundled = Path(__file__).parent.parent / "recipes" / f"{name}.toml"
    return bundled if bundled.is_file() else None


def within(wishes: Wishes, subject: Subject, device: DeviceRecord, budget: float | None) -> Wishes:
    """How many tokens a budget is enough for, if one is given."""
    if budget is None:
        return wishes
    if wishes.tokens or wishes.hours:
        raise WrongUse("--budget says how many tokens a model sees: leave out --tokens and --hours")
    hours = device_hours(device, dollars=budget, count=1, days=None)
    flops = affordable(device, hours).flops
    return wishes.model_copy(update={"tokens": flops / training_flops(subject, 1.0), "utilisation": device.efficiency})


def afford(device: DeviceRecord, dollars: float | None, days: float | None, count: int, format: Format) -> None:
    """Print the compute-optimal model for a budget."""
    found = affordable(device, device_hours(device, dollars=dollars, count=count, days=days), dollars)
    print(json.dumps(vars(found) | {"device": device.name}) if format == "json" else affordable_text(found, device))


def print_known(format: Format) -> None:
    """The presets and the devices."""
    devices: list[tuple[str, ...]] = [("device", "TFLOP/s", "GB", "GB/s", "W", "$/h", "reached", "source")]
    for device in DEVICES.values():
        price = f"{device.price:.2f}" if device.price else "–"
        numbers = (device.teraflops, device.memory, device.bandwidth, device.watts)
        reached = f"{device.efficiency:.0%}: {device.assumed}"
        devices.append((device.name, *(f"{number:g}" for number in numbers), price, reached, device.source))
    if format == "json":
        for preset in PRESETS.values():
            print(json.dumps({"preset": preset.name, "title": preset.title, "parameters": preset.parameters}))
        for device in DEVICES.values():
            print(json.dumps({"device": device.name} | device.table()))
        return
    if format == "markdown":
        print(
            markdown(
                [
                    ("preset", "model", "parameters"),
                    *((preset.name, preset.title, f"{preset.parameters:,}") for preset in PRESETS.values()),
                ]
            )
            + "\n\n"
            + markdown(devices)
            + "\n\n"
            + markdown(comparison())
        )
        return
    for preset in PRESETS.values():
        print(f"{preset.name:<18} {preset.parameters:>17,}  {preset.title}")
    print(
        f"\n{'device':<10} {'TFLOP/s':>8} {'GB':>5} {'GB/s':>6} {'W':>5} {'$/h':>6}  share of the peak that is assumed"
    )
    for name, teraflops, memory, bandwidth, watts, price, reached, _ in devices[1:]:
        print(f"{name:<10} {teraflops:>8} {memory:>5} {bandwidth:>6} {watts:>5} {price:>6}  {reached}")


def give(names: Sequence[str], plans: Sequence[Plan], output: Path | None, format: Format) -> None:
    """Print the plans, or write them to a file by its ending."""
    suffix = "" if output is None else output.suffix.lower()
    if output is not None and suffix in (".png", ".svg"):
        shapes, across, down = _drawn(names, plans)
        draw = to_svg if suffix == ".svg" else to_png
        replace_file(output, draw(shapes, math.ceil(across), down))
    elif output is not None and suffix == ".html":
        pictures = [to_svg(*draw_bars(bars(plan))).decode() for plan in plans]
        replace_file(output, page(plans, pictures).encode())
    else:
        if suffix not in ("", ".json", ".md", ".txt"):
            raise WrongUse(f"-o {output}: plans are written as .png, .svg, .html, .md, .json or .txt")
        format = {".json": "json", ".md": "markdown"}.get(suffix, format)  # type: ignore[assignment]
        with answers_to(output):
            print(_written(plans, format))
    if output is not None:
        print(output)


def _written(plans: Sequence[Plan], format: Format) -> str:
    if format == "json":
        return "\n".join(json.dumps(plan.table()) for plan in plans)
    if format == "markdown" or len(plans) > 1:
        return markdown(*plan_rows(plans))
    return plan_text(plans[0])


def _drawn(names: Sequence[str], plans: Sequence[Plan]) -> tuple[list[Any], int, int]:
    """One plan as bars; several as a table, with bars of their sizes below it."""
    if len(plans) == 1:
        return draw_bars(bars(plans[0]))
    title = "The lectures' table of sizes, counted" if list(names) == [LECTURES] else ", ".join(names)
    shapes, across, down = draw_table(title, *plan_rows(plans))
    sizes = [(plan.subject.title, plan.subject.parameters, short(plan.subject.parameters)) for plan in plans]
    more, wide, end = draw_bars([Bars("parameters, logarithmic", sizes, logarithmic=True)], top=down)
    return [*shapes, *more], max(across, wide), end


def bars(plan: Plan) -> list[Bars]:
    """Where a training's operations, memory and time go."""
    record = plan.table()
    parts = record["parameters_by_part"]
    costs = record["forward_flops_per_token_by_part"]
    memory = {name: size for name, size in plan.memory.table().items() if name != "total"}
    seconds = {name: size for name, size in plan.step.table().items() if name != "total"}
    return [
        Bars(f"{plan.subject.title}: parameters", [(part, count, short(count)) for part, count in parts.items()]),
        Bars("operations of a token's forward pass", [(part, cost, short(cost)) for part, cost in costs.items()]),
        Bars(
            f"memory of each {plan.device.name}: {plan.layout}",
            [(part, size, short_bytes(size)) for part, size in memory.items()],
        ),
        Bars("seconds of a step", [(part, size, f"{size:.3g} s") for part, size in seconds.items()]),
    ]
