"""A plan as one page that needs nothing else: no script, no other file."""

from collections.abc import Sequence
from html import escape

from saccade.plan.plan import Plan
from saccade.plan.text import plan_lines, plan_rows

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; color: #111 }
table { border-collapse: collapse; margin: 1rem 0; display: block; overflow-x: auto }
th, td { padding: .3rem .7rem; border-bottom: 1px solid #ddd; text-align: left; vertical-align: top }
th { color: #555; font-weight: 600 }
.notes { color: #555; font-size: .9rem }
svg { max-width: 100%; height: auto }
"""


def page(plans: Sequence[Plan], pictures: Sequence[str]) -> str:
    """`pictures`: SVG of each plan."""
    titles = ", ".join(plan.subject.title for plan in plans)
    parts = [f"<h1>Plan: {escape(titles)}</h1>"]
    if len(plans) > 1:
        parts.append(_table(*plan_rows(plans)))
    for plan, picture in zip(plans, pictures, strict=True):
        lines = [f"<tr><th>{escape(label)}</th><td>{escape(told)}</td></tr>" for label, told in plan_lines(plan)]
        parts += [f"<h2>{escape(plan.subject.title)}</h2>", f"<table>{''.join(lines)}</table>"]
        parts.append(picture[picture.index("<svg") :])
        notes = "".join(f"<p>[{number}] {escape(note)}</p>" for number, note in enumerate(plan.subject.notes, 1))
        parts.append(f'<div class="notes">{notes}</div>')
        parts.append(f'<p class="notes">{escape(plan.device.name)}: {escape(plan.device.source)}</p>')
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{escape(titles)}</title>'
    body = "\n".join(parts)
    return f'<!doctype html><html lang="en"><head>{head}<style>{STYLE}</style></head><body>\n{body}\n</body></html>\n'


def _table(rows: Sequence[Sequence[str]], notes: Sequence[str]) -> str:
    head, *body = rows
    lines = ["".join(f"<th>{escape(cell)}</th>" for cell in head)]
    lines += ["".join(f"<td>{escape(cell)}</td>" for cell in row) for row in body]
    table = "".join(f"<tr>{line}</tr>" for line in lines)
    told = "".join(f"<p>[{number}] {escape(note)}</p>" for number, note in enumerate(notes, 1))
    return f'<table>{table}</table><div class="notes">{told}</div>'
