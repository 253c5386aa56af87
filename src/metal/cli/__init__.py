"""metalctl, the command line: it runs the control plane, and it has the everyday commands of kubectl and of operators.

`main` lists the commands and imports the module of a command when it is called. `run` starts processes, `data` backs
up, restores, moves and verifies, `machines` acts on servers and claims, `objects` on objects of any kind, `why`
explains, and `console` opens serial consoles. `support` has what they share. Imports go downwards only (contract in
pyproject.toml).

It may import every other package. Start with `main`, then the module of a command.
"""

import sys

try:
    from metal.cli.main import main
except KeyboardInterrupt:  # Ctrl-C before there is a command that could handle it
    sys.stderr.write("Error: interrupted\n")
    sys.exit(130)

__all__ = ["main"]
