"""metalctl completion: completion scripts of shells."""

import click
from click.shell_completion import BashComplete, ZshComplete

_SHELLS = {"bash": BashComplete, "zsh": ZshComplete}


@click.command("completion")
@click.argument("shell", type=click.Choice(list(_SHELLS)))
def command(shell: str) -> None:
    """Print the completion script of a shell, for commands, options, kinds and names of objects.

    \b
    bash:  source <(metalctl completion bash)      in ~/.bashrc
    zsh:   source <(metalctl completion zsh)       in ~/.zshrc, after compinit

    Names are read from the API server within one second; without an API server there are none.
    """
    main = click.get_current_context().find_root().command
    click.echo(_SHELLS[shell](main, {}, "metalctl", "_METALCTL_COMPLETE").source())
