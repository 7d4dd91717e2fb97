"""A small server on loopback: the page's files, and what the page asks of models, in frames as they are made.

A frame is a byte for its kind, J for JSON and S for safetensors, then its length in four bytes, the lowest first.
"""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

from saccade.errors import UserError
from saccade.view.desk import Desk, Stopped
from saccade.view.page import page_file
from saccade.view.safety import HEADERS, Door

Values = dict[str, Any]
LARGEST_REQUEST = 32 * 2**20
PATIENCE = 30
"""Seconds for a request to arrive."""


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    server: "ViewServer"
    protocol_version = "HTTP/1.1"
    timeout: ClassVar[int] = PATIENCE
    server_version, sys_version = "saccade", ""

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        if (complaint := self._complaint(asks=False)) is not None:
            self._say(403, "text/plain; charset=utf-8", complaint.encode())
            return
        found = page_file("index.html" if path == "/" else path.removeprefix("/"))
        if found is None:
            self._say(404, "text/plain; charset=utf-8", b"no such file")
            return
        self._say(200, *found)

    def do_POST(self) -> None:
        self.close_connection = True
        if (complaint := self._complaint(asks=True)) is not None:
            self._say(403, "text/plain; charset=utf-8", complaint.encode())
            return
        try:
            asked = self._read()
        except ValueError as error:
            self._say(400, "text/plain; charset=utf-8", str(error).encode())
            return
        name = self.path.removeprefix("/")
        if name not in self.server.desk.answers:
            self._say(404, "text/plain; charset=utf-8", b"nothing here")
            return
        self.send_response(200)
        self._send_headers("application/octet-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.send_header("Connection", "close")
        self.end_headers()
        self._answer(name, asked)

    def _answer(self, name: str, asked: Values) -> None:
        try:
            try:
                self.server.desk.answers[name](asked, self._frame)
            except Stopped:
                self._frame({"stopped": True})
            except UserError as error:
                self._frame({"error": str(error)})
            except (ConnectionError, TimeoutError):
                raise
            except Exception as error:
                self._frame({"error": f"this is a defect of Saccade: {error!r}"[:400]})
            self._chunk(b"")
        except (ConnectionError, TimeoutError):
            return  # the page has gone, or has stopped asking

    def _frame(self, content: Values | bytes) -> None:
        kind, payload = (b"S", content) if isinstance(content, bytes) else (b"J", json.dumps(content).encode())
        self._chunk(kind + len(payload).to_bytes(4, "little") + payload)

    def _chunk(self, content: bytes) -> None:
        """An empty one ends the answer, so that a page knows a whole answer from half of one."""
        self.wfile.write(f"{len(content):x}\r\n".encode() + content + b"\r\n")
        self.wfile.flush()

    def _complaint(self, *, asks: bool) -> str | None:
        if len(self.headers.get_all("Host") or []) != 1:
            return "this server answers only under its own address"
        return self.server.door.complaint(dict(self.headers.items()), asks=asks)

    def _read(self) -> Values:
        length = self.headers.get("Content-Length", "")
        if not length.isascii() or not length.isdigit() or self.headers.get("Transfer-Encoding"):
            raise ValueError("a request says how long it is")
        if int(length) > LARGEST_REQUEST:
            raise ValueError(f"more than {LARGEST_REQUEST // 2**20} MB, the most that is read")
        try:
            found = json.loads(self.rfile.read(int(length)))
        except (ValueError, RecursionError):
            raise ValueError("not JSON") from None
        if not isinstance(found, dict):
            raise ValueError("not a table")
        return found

    def _say(self, code: int, kind: str, content: bytes) -> None:
        self.send_response(code)
        self._send_headers(kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _send_headers(self, kind: str) -> None:
        self.send_header("Content-Type", kind)
        for name, value in HEADERS.items():
            self.send_header(name, value)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: what somebody types is not written down."""


class ViewServer(ThreadingHTTPServer):
    """Listens on loopback only."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, desk: Desk, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.desk = desk
        self.door = Door(self.server_address[1])

    @property
    def address(self) -> str:
        """Where the page is; what stands behind # is never sent."""
        return f"http://127.0.0.1:{self.door.port}/#t={self.door.token}"

    def serve_aside(self) -> threading.Thread:
        """In a thread of its own."""
        thread = threading.Thread(target=self.serve_forever, daemon=True)
        thread.start()
        return thread

    def handle_error(self, request: object, client_address: object) -> None:
        """A page that closes its connection is no error."""
