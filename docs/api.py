"""Builds the API reference from the docstrings of the public names: `python docs/api.py -o OUT`, with the extra `docs`.

Any warning is an error, and so is a public name, field or method without a docstring.
"""

import argparse
import importlib
import inspect
import pkgutil
import sys
import types
import warnings
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, get_args

import saccade
import saccade.sources
from saccade.pipelines.answer import Answer
from saccade.pipelines.pipeline import Pipeline, Request
from saccade.pipelines.table import TASKS
from saccade.sources.source import Source
from saccade.tasks.training import train

PIPELINES = """What `saccade.load` and `saccade.train` return, and what those return when they are called.

A pipeline is a loaded model: an input in, an answer out; a list in, a list out. Every pipeline has the methods of
`Pipeline`, and every answer the fields of `Answer`."""
SOURCES = """What a pipeline reads: `pipeline.source`.

A source checks a raw input against its limits, reads it, and makes arrays of several. Only who writes a pipeline for a
new kind of input needs more of it than `source.takes`, which says in words what may be given."""
# Calling a pipeline is what it is there for; making one, or an answer, is not.
TEMPLATE = """{% extends "default/module.html.jinja2" %}
{% macro is_public(doc) %}
  {% if doc.name == "__call__" %}true
  {% elif doc.name == "__init__" and doc.modulename == "saccade.pipelines" and doc.qualname != "Request.__init__" %}
  {% else %}{{ default_is_public(doc) }}{% endif %}
{% endmacro %}
"""


def pages() -> list[types.ModuleType]:
    """A module for every page, with nothing in it but public names. The root first."""
    names: dict[str, object] = {name: getattr(saccade, name) for name in _in_order_of_docstring()}
    names["train"] = train  # `saccade.train` is a package that can be called
    pipelines: list[type] = [Request, Pipeline, Answer]
    for row in TASKS.values():
        module, _, attribute = row.pipeline.partition(":")
        pipeline = getattr(importlib.import_module(module), attribute)
        answer = get_args(pipeline.__orig_bases__[0])[1]
        # A string in answer.py, whose names mean nothing in the modules that inherit the field.
        answer.__init__.__annotations__["pipeline"] = Pipeline | None
        pipelines += [pipeline, answer]
    for module_info in pkgutil.iter_modules(saccade.sources.__path__):
        importlib.import_module(f"saccade.sources.{module_info.name}")
    sources: list[type] = [Source, *sorted(Source.__subclasses__(), key=lambda one: one.__name__)]
    assert saccade.__doc__
    return [
        _page("saccade", saccade.__doc__, names),
        _page("saccade.pipelines", PIPELINES, {one.__name__: one for one in pipelines}),
        _page(
            "saccade.sources", SOURCES, {one.__name__: one for one in sources if one.__module__.startswith("saccade.")}
        ),
    ]


def undocumented(page: types.ModuleType) -> Iterator[str]:
    """The public names of a page, and those in its classes, that nothing is said about."""
    for name in page.__all__:
        thing = getattr(page, name)
        if not inspect.getdoc(thing):
            yield name
        if inspect.isclass(thing):
            yield from (f"{name}.{member}" for member in _own(thing) if not _told(thing, member))


def _in_order_of_docstring() -> list[str]:
    assert saccade.__doc__
    return sorted(saccade.__all__, key=lambda name: saccade.__doc__.index(f"    {name} "))


def _page(name: str, text: str, names: dict[str, Any]) -> types.ModuleType:
    page = types.ModuleType(name, text)
    page.__dict__.update(names, __all__=list(names), __path__=[])
    return page


def _own(thing: type) -> list[str]:
    """The public members of a class that are not inherited: methods, properties, fields."""
    return [name for name in {**vars(thing), **inspect.get_annotations(thing)} if not name.startswith("_")]


def _told(thing: type, member: str) -> bool:
    """Whether it has a docstring, here or in a base class."""
    from pdoc.doc import Class

    name = (thing.__module__, thing.__qualname__)
    found = Class(*name, thing, name).get(member)
    return found is not None and bool(found.docstring)


def _say_where_to_import_from(made: list[types.ModuleType]) -> None:
    """A page gathers names of several modules."""
    for page in made[1:]:
        for thing in (getattr(page, name) for name in page.__all__):
            thing.__doc__ = f"{inspect.cleandoc(thing.__doc__)}\n\n`from {thing.__module__} import {thing.__name__}`"


def main() -> int:
    """Build the pages; 1 if something is not told."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path, required=True, help="folder of the pages")
    out: Path = parser.parse_args().output
    made = pages()
    warnings.simplefilter("error")
    from pdoc import render
    from pdoc.doc import Module

    missing = [f"{page.__name__}.{name}" for page in made for name in undocumented(page)]
    if missing:
        print(f"no docstring: {', '.join(missing)}", file=sys.stderr)
        return 1
    _say_where_to_import_from(made)
    modules = {page.__name__: Module(page) for page in made}
    with TemporaryDirectory() as templates:
        (Path(templates) / "module.html.jinja2").write_text(TEMPLATE)
        # No search: its index would be larger than all pages.
        render.configure(
            docformat="markdown",
            include_undocumented=False,
            show_source=False,
            search=False,
            footer_text=f"Saccade {saccade.__version__}",
            template_directory=Path(templates),
        )
        for name, module in modules.items():
            file = out / f"{name.replace('.', '/')}.html"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(render.html_module(module, modules), encoding="utf-8")
        (out / "index.html").write_text(render.html_index(modules), encoding="utf-8")
    print(f"{len(modules)} pages of {sum(len(page.__all__) for page in made)} names: {out / 'index.html'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
