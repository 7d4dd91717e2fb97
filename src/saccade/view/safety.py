"""Who may ask the page's server: a page it served itself, on this machine, that knows the token of its address."""

import hmac
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field

HEADER = "X-Saccade-Token"
HOSTS = ("127.0.0.1", "[::1]", "localhost")
_HOST = re.compile(r"(?P<name>\[[0-9a-fA-F:]+\]|[A-Za-z0-9.-]+):(?P<port>[0-9]{1,5})\Z")
_ORIGIN = re.compile(r"http://(?P<host>[^/?#@\\\s]+)\Z")
POLICY = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "connect-src 'self'",
        "img-src 'self' blob:",
        "media-src blob:",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    ]
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


@dataclass(frozen=True)
class Door:
    """Lets in who names this server by its own name and port, comes from its own page, and has the token."""

    port: int
    token: str = field(default_factory=lambda: secrets.token_urlsafe(24), repr=False)

    def complaint(self, headers: Mapping[str, str], *, asks: bool) -> str | None:
        """Why a request is refused, if it is. `asks`: it wants something of a model, not only a file of the page."""
        if not self._is_own(headers.get("Host", "")):
            return "this server answers only under its own address"
        origin = headers.get("Origin")
        if origin is not None:
            found = _ORIGIN.match(origin)
            if found is None or not self._is_own(found["host"]):
                return "requests of other pages are refused"
        if asks and origin is None and headers.get("Sec-Fetch-Site", "same-origin") not in ("same-origin", "none"):
            return "requests of other pages are refused"
        if asks and not hmac.compare_digest(headers.get(HEADER, "").encode(), self.token.encode()):
            return "the token is missing or wrong: open the address that `saccade view` printed"
        return None

    def _is_own(self, host: str) -> bool:
        found = _HOST.match(host)
        return found is not None and found["name"].lower() in HOSTS and found["port"] == str(self.port)
