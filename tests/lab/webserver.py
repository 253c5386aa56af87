"""A small web server for tests that need only files and a place for reports."""

import socket
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.lab.netns import Namespace


class WebServer:
    """Serves `files` by path inside a namespace, and records POSTs as (path, headers, body)."""

    def __init__(self, where: Namespace, host: str, port: int, note: Callable[[str], None]) -> None:
        self.files: dict[str, bytes] = {}
        self.received: list[tuple[str, dict[str, str], bytes]] = []
        listener = where.inside(lambda: socket.create_server((host, port), backlog=16))
        self._server = ThreadingHTTPServer((host, port), _handler(self, note), bind_and_activate=False)
        self._server.socket.close()
        self._server.socket = listener
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stops serving."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _handler(server: WebServer, note: Callable[[str], None]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = server.files.get(self.path.partition("?")[0])
            note(f"GET {self.path} from {self.client_address[0]}")
            self._answer(404 if body is None else 200, body or b"")

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
            note(f"POST {self.path} from {self.client_address[0]}")
            server.received.append((self.path, dict(self.headers.items()), body))
            self._answer(201, b"")

        def _answer(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *told: object) -> None:
            """The run's log has it already."""

    return Handler
