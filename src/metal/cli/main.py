"""The commands of metalctl. Each one's code is loaded when it is called, so that `--help` is quick."""

import importlib

import click

import metal

COMMANDS = {
    "up": ("metal.cli.up", "Run everything here: embedded API, controllers, boot server, registry."),
    "manager": ("metal.cli.manager", "Run controllers, boot server and registry against a Kubernetes cluster."),
    "sim": ("metal.cli.sim", "Run simulated BMCs and machines against a control plane."),
    "status": ("metal.cli.status", "Show every server: state, since when, power, and what it waits for."),
    "evidence": ("metal.cli.evidence", "List, show and verify evidence of what became of tenants' data."),
    "move": ("metal.cli.move", "Move all objects from one API to another, such as from `metalctl up` into a cluster."),
    "config": ("metal.cli.config", "Print every configuration option with its meaning, or check a file."),
    "backup": ("metal.cli.backup", "Copy everything that an embedded API holds to a file, while it works."),
    "restore": ("metal.cli.restore", "Put such a copy in place of what an embedded API holds."),
    "lease-hook": ("metal.cli.lease_hook", "Tell the control plane of a DHCP lease (called by a DHCP server)."),
}


class _Lazy(click.Group):
    """A group whose commands live in modules of their own."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(COMMANDS[cmd_name][0]).command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


@click.group(cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(metal.__version__, prog_name="metalctl")
def main() -> None:
    """Bare-metal automation: from a BMC's DHCP lease to your operating system, and back.

    \b
    First steps:
      metalctl up --fleet 8      everything on this machine, with eight simulated servers
      metalctl status            what each server is doing, and what it waits for
      kubectl --kubeconfig .metal/kubeconfig get servers

    Exit codes: 0 done, 1 it failed (the sentence says why), 2 the command line or configuration is wrong.
    """
