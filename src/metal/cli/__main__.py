"""Runs metalctl as `python -m metal.cli`."""

from metal.cli.main import main

main()
