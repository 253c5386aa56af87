"""A registry on loopback that answers as the test configures."""

import contextlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any


class LoopbackRegistry:
    """Answers with `statuses` in turn (the last one repeatedly) and records requests."""

    def __init__(self, statuses: list[int], headers: dict[str, str] | None = None) -> None:
        self.statuses, self.headers = list(statuses), headers or {}
        self.paths: list[str] = []
        self.tokens: list[str | None] = []
        self.bodies: list[dict[str, Any]] = []
        self.url = ""

    def next_status(self) -> int:
        """The status of the present request."""
        return self.statuses.pop(0) if len(self.statuses) > 1 else self.statuses[0]


@contextlib.contextmanager
def serve(*statuses: int, headers: dict[str, str] | None = None) -> Iterator[LoopbackRegistry]:
    """Serve on a free port until the block ends."""
    registry = LoopbackRegistry(list(statuses), headers)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            registry.paths.append(self.path)
            registry.tokens.append(self.headers.get("Authorization"))
            registry.bodies.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(registry.next_status())
            for name, value in registry.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(b"said the registry")

        def log_message(self, *told: object) -> None:
            """Tests use the recorded requests instead."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    registry.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield registry
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
