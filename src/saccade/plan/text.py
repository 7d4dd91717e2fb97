"""A plan in words, and several as a table."""

from collections.abc import Iterator, Sequence

from saccade.arch.weights import parameters_by_part
from saccade.plan.budget import Affordable
from saccade.plan.compute import forward_by_part, petaflop_days
from saccade.plan.devices import DeviceRecord
from saccade.plan.plan import Plan
from saccade.presets.preset import Trained, sizes_of

UNITS = [(1e18, "E"), (1e15, "P"), (1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "k")]


def short(number: float, digits: int = 3) -> str:
    """1557611200 -> 1.56 B"""
    for size, unit in UNITS:
        if abs(number) >= size:
            return f"{number / size:.{digits}g} {unit}"
    return f"{number:.{digits}g}"


def short_bytes(number: float) -> str:
    for size, unit in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if number >= size:
            return f"{number / size:.3g} {unit}"
    return f"{number:.0f} B"


def duration(hours: float) -> str:
    """In hours, and in days where these are many."""
    if hours < 1:
        return f"{hours * 60:.3g} minutes"
    return f"{hours:,.4g} hours" + (f" ({hours / 24:,.3g} days)" if hours >= 48 else "")


def plan_lines(plan: Plan) -> Iterator[tuple[str, str]]:
    """A label and what is said under it, for each line."""
    subject, device = plan.subject, plan.device
    yield "parameters", f"{subject.parameters:,}"
    who = [f"{flops:.3g} {name}" for name, flops in plan.flops.items()]
    yield "tokens", f"{short(plan.tokens)}, {plan.tokens_told}; {plan.steps:,.0f} steps of {plan.batch:,} texts"
    first = next(iter(plan.flops.values()))
    yield "operations", f"{', '.join(who)}; {petaflop_days(first):,.4g} petaflop/s-days"
    yield "time", f"{plan.count:,} {device.name} × {duration(plan.hours)}, {plan.hours_told}"
    shares = [f"{100 * share:.1f} % {name}" for name, share in plan.utilisation.items()]
    yield "utilisation", f"{', '.join(shares)}, of {device.teraflops:g} TFLOP/s a device"
    if plan.dollars is None:
        yield "money", f"no price of {device.name} is known: give one with --price"
    else:
        yield "money", f"${plan.dollars:,.0f} at ${device.price:.2f} an hour"
    yield "energy", f"{plan.megawatt_hours:,.4g} MWh at {device.watts:g} W a device, cooling and hosts not counted"
    yield "layout", f"{plan.layout}; {_least(plan)}"
    memory = [f"{name} {short_bytes(size)}" for name, size in plan.memory.table().items() if name != "total"]
    yield "memory", f"{short_bytes(plan.memory.total)} of {device.memory:g} GB a device: {', '.join(memory)}"
    sent = [f"{name} {short_bytes(size)}" for name, size in plan.communication.table().items()]
    yield "sent", f"a device and step: {', '.join(sent) or 'nothing'}"
    parts = [f"{name} {seconds:.3g} s" for name, seconds in plan.step.table().items() if name != "total"]
    yield "step", f"{plan.step.total:.3g} s: {', '.join(parts)}"
    if plan.cache_per_token:
        texts = f"{plan.requests:,} texts of {subject.context:,} tokens fit on {plan.answering_devices:,} {device.name}"
        yield "answering", f"{short_bytes(plan.cache_per_token)} of keys and values a token; {texts}"


def plan_text(plan: Plan) -> str:
    """For the terminal."""
    subject = plan.subject
    lines = [subject.title, ""]
    lines += [f"{label:<12} {told}" for label, told in plan_lines(plan)]
    counts, costs = parameters_by_part(subject.weights), forward_by_part(subject)
    lines += ["", f"{'part':<44} {'parameters':>18}"]
    lines += [f"{part:<44} {count:>18,}" for part, count in counts.items()]
    total = sum(costs.values())
    lines += ["", f"{'forward pass':<44} {'a token':>12} {'share':>6}"]
    lines += [f"{part:<44} {short(cost / subject.tokens):>12} {cost / total:>6.1%}" for part, cost in costs.items()]
    lines += ["", *(f"[{number}] {note}" for number, note in enumerate(subject.notes, 1))] if subject.notes else []
    return "\n".join(lines)


HEADER = (
    "model", "layers", "width", "heads", "feed-forward", "parameters", "published", "data", "training", "tokens",
    "FLOPs", "PF-days", "time", "money",
)  # fmt: skip


def plan_rows(plans: Sequence[Plan]) -> tuple[list[tuple[str, ...]], list[str]]:
    """The lectures' table with exact counts, what the training takes by the plan, and the footnotes."""
    rows: list[tuple[str, ...]] = [HEADER]
    notes: list[str] = []
    for plan in plans:
        subject, trained = plan.subject, plan.subject.trained
        notes += [note for note in subject.notes if note not in notes]
        marks = [notes.index(note) + 1 for note in subject.notes]
        flops = next(iter(plan.flops.values()))
        money = "–" if plan.dollars is None else f"${plan.dollars:,.0f}"
        rows.append(
            (
                subject.title + "".join(f" [{mark}]" for mark in marks),
                *sizes_of(subject.model).values(),
                f"{subject.parameters:,}",
                subject.published or "–",
                trained.data or "–",
                _trained(trained),
                short(plan.tokens),
                f"{flops:.3g}",
                f"{petaflop_days(flops):,.4g}",
                f"{plan.count:,} {plan.device.name} × {plan.hours:,.4g} h",
                money,
            )
        )
    return rows, notes


def markdown(rows: Sequence[Sequence[str]], notes: Sequence[str] = ()) -> str:
    """A table; numbers stand to the right."""
    head, *body = rows
    right = [all(_is_number(row[column]) for row in body) for column in range(len(head))]
    lines = [_line(head), _line(["---:" if is_right else "---" for is_right in right]), *map(_line, body)]
    return "\n".join(lines + (["", *(f"[{n}] {note}  " for n, note in enumerate(notes, 1))] if notes else []))


def affordable_text(found: Affordable, device: DeviceRecord) -> str:
    """What a budget allows, in words."""
    money = f"${found.dollars:,.0f}: " if found.dollars else ""
    return (
        f"{money}{found.device_hours:,.0f} hours of {device.name}, {found.flops:.3g} operations at "
        f"{device.efficiency:.0%} of the peak ({device.assumed})\n"
        f"compute-optimal: {short(found.parameters)} parameters, {short(found.tokens)} tokens "
        "(Hoffmann et al. 2022: 20 tokens a parameter)"
    )


def _least(plan: Plan) -> str:
    return f"{plan.least_devices:,} hold it" if plan.least_devices else "no number of them holds it"


def _trained(trained: Trained) -> str:
    if not trained.count:
        return "–"
    hours = f" × {trained.hours:g} h" if trained.hours else ""
    return f"{trained.count:,} {trained.device}{hours}"


def _is_number(text: str) -> bool:
    return text == "–" or text.replace(",", "").replace(".", "").replace("+", "").replace("e", "").isdigit()


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
