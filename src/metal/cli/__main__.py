"""`python -m metal.cli` is metalctl."""

from metal.cli.main import main

main()
