"""The search settings of a model, with those of a request in their place."""

from saccade.decode.search import SearchConfig
from saccade.pipelines.pipeline import Request


def asked_search(config: SearchConfig, request: Request, where: str) -> SearchConfig:
    """A request with the model's own settings where it says nothing; `where` is for errors."""
    named = {name: getattr(request, name) for name in ("beam", "alpha", "temperature", "seed")}
    known = {name: value for name, value in named.items() if value is not None}
    asked = SearchConfig.read(config.table() | known, where=where)
    if request.best > asked.beam and asked.temperature is None:
        asked = asked.model_copy(update={"beam": request.best})
    return asked
