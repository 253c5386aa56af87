"""The commands of metalctl. Each one's code is loaded when it is called, so that `--help` is quick."""

import importlib

import click

import metal

COMMANDS = {
    "up": ("metal.cli.run.up", "Run everything here: embedded API, controllers, boot server, registry."),
    "manager": ("metal.cli.run.manager", "Run controllers, boot server and registry against a Kubernetes cluster."),
    "sim": ("metal.cli.run.sim", "Run simulated BMCs and machines against a control plane."),
    "status": ("metal.cli.machines.status", "Show every server: state, since when, power, and what it waits for."),
    "why": ("metal.cli.why.command", "Say what a server or claim waits for, what was tried, and what to do."),
    "get": ("metal.cli.objects.get", "Show objects of any kind."),
    "describe": ("metal.cli.objects.describe", "Show everything about an object, and what happened to it."),
    "apply": ("metal.cli.objects.apply", "Create or change objects as files say."),
    "delete": ("metal.cli.objects.delete", "Delete objects."),
    "claim": ("metal.cli.machines.claim", "Claim servers and boot an image on them."),
    "release": ("metal.cli.machines.release", "Give claimed servers back."),
    "power": ("metal.cli.machines.power", "Switch or restart the machines of claims, or show their power."),
    "retry": ("metal.cli.machines.retry", "Let servers in Error go on."),
    "console": ("metal.cli.console.command", "Open a server's serial console over its BMC."),
    "cordon": ("metal.cli.machines.cordon:cordon", "Keep new claims away from servers."),
    "uncordon": ("metal.cli.machines.cordon:uncordon", "Let claims have servers again."),
    "park": ("metal.cli.machines.park:park", "Take hands off servers."),
    "unpark": ("metal.cli.machines.park:unpark", "Manage parked servers again."),
    "maintain": ("metal.cli.machines.maintain", "Take servers into maintenance, or end it."),
    "approve": ("metal.cli.machines.approve", "Let maintenances have the servers of your claims."),
    "evidence": ("metal.cli.data.evidence", "List, show and verify evidence of what became of tenants' data."),
    "move": (
        "metal.cli.data.move",
        "Move all objects to another API, such as from `metalctl up` into a cluster.",
    ),
    "config": ("metal.cli.run.config", "Print every configuration option with its meaning, or check a file."),
    "backup": ("metal.cli.data.backup", "Copy everything that an embedded API holds to a file, while it works."),
    "restore": ("metal.cli.data.restore", "Put such a copy in place of what an embedded API holds."),
    "lease-hook": ("metal.cli.run.lease_hook", "Tell the control plane of a DHCP lease (called by a DHCP server)."),
    "completion": ("metal.cli.completion", "Have bash or zsh complete commands and names."),
}
"""Where each command is (`command` in the module, or what is named behind the colon), and what it does."""
_BY_HAND = (
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


class _Lazy(click.Group):
    """A group whose commands live in modules of their own."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name][0].partition(":")
        command: click.Command = getattr(importlib.import_module(module), name or "command")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        others = tuple(name for name in COMMANDS if name not in _BY_HAND + _OBJECTS)
        sections = {"Servers and claims": _BY_HAND, "Objects of any kind": _OBJECTS, "Control plane": others}
        for title, names in sections.items():
            with formatter.section(title):
                formatter.write_dl([(name, COMMANDS[name][1]) for name in names])


@click.group(cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(metal.__version__, prog_name="metalctl")
def main() -> None:
    """Bare-metal automation: from a BMC's DHCP lease to your operating system, and back.

    \b
    First steps:
      metalctl up --fleet 8      everything on this machine, with eight simulated servers
      metalctl status            what each server is doing, and what it waits for
      metalctl claim first --image IMAGE --wait
      metalctl why claim/first   what it is doing, and what to do

    Exit codes: 0 done, 1 it failed (the sentence says why), 2 the command line or configuration is wrong; commands on
    servers and objects also have 3 for not found and 4 for timed out.
    """
