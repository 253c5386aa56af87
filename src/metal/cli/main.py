"""The commands of metalctl. The module of a command is imported when it is called, so that `--help` is fast."""

import importlib
from pathlib import Path

import click

import metal

COMMANDS = {
    "up": ("metal.cli.run.up", "Run the control plane on this machine, with an embedded API."),
    "manager": ("metal.cli.run.manager", "Run the control plane for a Kubernetes cluster."),
    "sim": ("metal.cli.run.sim", "Run simulated BMCs and machines for a control plane."),
    "status": ("metal.cli.machines.status", "Show the state of every server, its power, and what it waits for."),
    "why": ("metal.cli.why.command", "Explain what a server or a claim waits for, and what to do."),
    "get": ("metal.cli.objects.get", "List objects of any kind."),
    "describe": ("metal.cli.objects.describe", "Show the details and the Events of objects."),
    "apply": ("metal.cli.objects.apply", "Create or update the objects in files."),
    "delete": ("metal.cli.objects.delete", "Delete objects."),
    "claim": ("metal.cli.machines.claim", "Claim servers and boot an image on them."),
    "release": ("metal.cli.machines.release", "Delete claims and sanitize their servers."),
    "power": ("metal.cli.machines.power", "Change or show the power of claimed servers."),
    "retry": ("metal.cli.machines.retry", "Retry servers in state Error."),
    "console": ("metal.cli.console.command", "Open the serial console of a server."),
    "cordon": ("metal.cli.machines.cordon:cordon", "Mark servers as unclaimable."),
    "uncordon": ("metal.cli.machines.cordon:uncordon", "Mark servers as claimable."),
    "park": ("metal.cli.machines.park:park", "Stop managing servers."),
    "unpark": ("metal.cli.machines.park:unpark", "Manage parked servers again."),
    "maintain": ("metal.cli.machines.maintain", "Start or end the maintenance of servers."),
    "approve": ("metal.cli.machines.approve", "Approve the maintenance of claimed servers."),
    "evidence": ("metal.cli.data.evidence", "List, show and verify the evidence of sanitizations."),
    "move": (
        "metal.cli.data.move",
        "Move all objects to another API server, such as a cluster.",
    ),
    "config": ("metal.cli.run.config", "Print every configuration option, or validate a file."),
    "backup": ("metal.cli.data.backup", "Back up all objects of an embedded API."),
    "restore": ("metal.cli.data.restore", "Restore a backup into an embedded API."),
    "lease-hook": ("metal.cli.run.lease_hook", "Report a DHCP lease (called by a DHCP server)."),
    "dhcp-config": ("metal.cli.run.dhcp_config", "Print a configuration of dnsmasq or Kea for network boot."),
    "completion": ("metal.cli.completion", "Print the completion script of bash or zsh."),
}
"""Module of each command (its `command`, or the name after the colon), and its summary."""
_SERVERS_AND_CLAIMS = (
    "status",
    "why",
    "claim",
    "release",
    "power",
    "retry",
    "console",
    "cordon",
    "uncordon",
    "park",
    "unpark",
    "maintain",
    "approve",
)
_OBJECTS = ("get", "describe", "apply", "delete")


class Interrupted(click.ClickException):
    """Ctrl-C, where no command waits for it."""

    exit_code = 130

    def __init__(self) -> None:
        super().__init__("interrupted")


class _Lazy(click.Group):
    """A group whose commands are in modules of their own."""

    def invoke(self, ctx: click.Context) -> object:
        """Import and run the command. Raises Interrupted."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise Interrupted from None

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name][0].partition(":")
        command: click.Command = getattr(importlib.import_module(module), name or "command")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        others = tuple(name for name in COMMANDS if name not in _SERVERS_AND_CLAIMS + _OBJECTS)
        sections = {"Servers and claims": _SERVERS_AND_CLAIMS, "Objects of any kind": _OBJECTS, "Control plane": others}
        for title, names in sections.items():
            with formatter.section(title):
                formatter.write_dl([(name, COMMANDS[name][1]) for name in names])


@click.group(cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(metal.__version__, prog_name="metalctl")
@click.option(
    "--kubeconfig", type=click.Path(path_type=Path, dir_okay=False), help="Kubeconfig file, as after a command."
)
@click.option("--context", help="Context of the kubeconfig, as after a command.")
@click.pass_context
def main(ctx: click.Context, /, **connection: Path | str | None) -> None:
    """Bare-metal automation: from a BMC's DHCP lease to your operating system, and back.

    \b
    First steps:
      metalctl up --fleet 8      run the control plane here, with eight simulated servers
      metalctl status            show the state of each server, and what it waits for
      metalctl claim first --image IMAGE --wait
      metalctl why claim/first   explain its state, and what to do

    Exit codes: 0 done, 1 failed (with a message), 2 usage or configuration error; commands on servers and objects also
    have 3 not found and 4 timed out; 130 interrupted by Ctrl-C.
    """
    # the command reads them from the parameters of this context (`options.inherited`)
    for name in (name for name, value in connection.items() if value is not None):
        if not _has_option(ctx, name):
            raise click.UsageError(f"metalctl {ctx.invoked_subcommand} has no option --{name}")


def _has_option(ctx: click.Context, name: str) -> bool:
    command = main.get_command(ctx, ctx.invoked_subcommand or "")
    return isinstance(command, click.Group) or (command is not None and name in {one.name for one in command.params})
