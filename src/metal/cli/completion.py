"""metalctl completion"""

import click
from click.shell_completion import BashComplete, ZshComplete

_SHELLS = {"bash": BashComplete, "zsh": ZshComplete}


@click.command("completion")
@click.argument("shell", type=click.Choice(list(_SHELLS)))
def command(shell: str) -> None:
    """Print what makes a shell complete commands, options, kinds and names of objects.

    \b
    bash:  source <(metalctl completion bash)      in ~/.bashrc
    zsh:   source <(metalctl completion zsh)       in ~/.zshrc, behind compinit

    Names come from the API that the command line reaches, within a second; without an API none are offered.
    """
    from metal.cli.main import main

    click.echo(_SHELLS[shell](main, {}, "metalctl", "_METALCTL_COMPLETE").source())
