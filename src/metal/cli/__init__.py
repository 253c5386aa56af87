"""metalctl, the command line."""

from metal.cli.main import main

__all__ = ["main"]
