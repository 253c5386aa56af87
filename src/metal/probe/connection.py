"""The options for the registry, shared by all commands of metalprobe."""

from __future__ import annotations

import argparse
from pathlib import Path

from metal.probe.registry import Registry


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options; the names of the first three are those of the Go operator's probe."""
    parser.add_argument("--registry-url", metavar="URL", help="http(s)://HOST:PORT; the report's own path is added")
    parser.add_argument("--server-uuid", metavar="UUID", help="the system UUID under which the server is known")
    parser.add_argument("--token", metavar="TOKEN|@FILE", help="this boot's token, better as a file only root reads")
    parser.add_argument("--token-file", metavar="FILE", type=Path, help="the same as --token @FILE")
    parser.add_argument("--ca-file", metavar="FILE", help="CA certificates to verify an https registry")
    parser.add_argument("--timeout", type=float, default=5.0, metavar="S", help="seconds for one request (default 5)")


def registry(options: argparse.Namespace) -> Registry:
    """The registry that the options name.

    Raises:
        ValueError: an option is missing or cannot be used.
        OSError: the token's file cannot be read.
    """
    for name in ("registry_url", "server_uuid"):
        if not getattr(options, name):
            raise ValueError(f"--{name.replace('_', '-')} is missing")
    return Registry(
        options.registry_url, options.server_uuid, _token(options), timeout=options.timeout, ca_file=options.ca_file
    )


def _token(options: argparse.Namespace) -> str:
    text: str = options.token or ""
    path = options.token_file or (Path(text[1:]) if text.startswith("@") else None)
    return path.read_text().strip() if path else text
