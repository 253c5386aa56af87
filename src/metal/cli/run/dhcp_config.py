"""metalctl dhcp-config: configurations of DHCP servers with which machines boot."""

import asyncio
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import click

from metal.api.core import LEASE
from metal.api.kinds import METAL_GROUP, kinds
from metal.api.names import BMC_NETWORKS, BOOT_URL
from metal.boot.dhcp import dnsmasq, hook, kea, site
from metal.cli.support.connection import connect, connection_options
from metal.cli.support.durations import Duration
from metal.config import Config, ConfigError, load
from metal.kube.client.errors import ApiError, NotFound

_KUBECONFIG = "/etc/metal/kubeconfig"
_FILE = click.Path(path_type=Path, dir_okay=False)
_PLAIN = re.compile(r"/[A-Za-z0-9._+@/-]*")


@dataclass(frozen=True)
class _Files:
    """What is written from: the site, Kea's libraries, and the command that the hook runs."""

    site: site.Site
    kea_hooks: str
    command: list[str]

    def of(self, server: str) -> dict[str, str]:
        """Name and content of each file for this server."""
        if server == "hook":
            return {Path(self.site.hook).name: hook.script(self.command)}
        if server == "dnsmasq":
            return {"dnsmasq.conf": dnsmasq.configuration(self.site)}
        if server == "tftp":
            return {"tftp.conf": dnsmasq.tftp_configuration(self.site)}
        made = {"kea-dhcp4.conf": kea.configuration4(self.site, self.kea_hooks)} if self.site.subnets else {}
        if self.site.prefix:
            made["kea-dhcp6.conf"] = kea.configuration6(self.site, self.kea_hooks)
        return made

    def beside(self, server: str) -> dict[str, str]:
        """The same with the files that this server needs besides."""
        other = {"dnsmasq": ("hook",), "kea": ("hook", "tftp")}.get(server, ())
        return {**self.of(server), **{name: text for kind in other for name, text in self.of(kind).items()}}


@click.command("dhcp-config")
@click.argument("server", type=click.Choice(["dnsmasq", "kea", "tftp", "hook"]))
@click.option(
    "--from", "source", type=click.Choice(["live"]), help="Read the boot server's URL from the running manager."
)
@click.option("--config", "config_file", type=_FILE, help="Configuration file of the control plane, for the same.")
@click.option("--boot-url", help="URL of the boot server for machines. Defaults to that of --config or --from live.")
@click.option("--interface", default="eth0", show_default=True, help="Network interface of the DHCP server.")
@click.option(
    "--subnet", multiple=True, help="IPv4 network in which addresses are leased, such as 192.0.2.0/24; several."
)
@click.option("--range", "ranges", multiple=True, help="Leased addresses of a subnet, such as 192.0.2.100-192.0.2.199. "
              "Defaults to its upper half.")  # fmt: skip
@click.option("--router", multiple=True, help="Router of a subnet. Without it clients get none.")
@click.option("--ipv6", help="IPv6 network in which addresses are leased: a /64.")
@click.option("--dns", multiple=True, help="Name server of clients. Needed if the boot server's URL has a name.")
@click.option("--tftp-server", multiple=True, help="Address of the TFTP server, one of each family. Defaults to the "
              "address in the boot server's URL.")  # fmt: skip
@click.option("--tftp-root", default="/usr/lib/ipxe", show_default=True, help="Folder of iPXE's binaries on the TFTP "
              "server: undionly.kpxe, snponly.efi, arm64-efi/snponly.efi.")  # fmt: skip
@click.option("--efi-binary", type=click.Choice(["snponly.efi", "ipxe.efi"]), default="snponly.efi", show_default=True,
              help="Which iPXE UEFI gets by TFTP: with the firmware's network driver, or with its own.")  # fmt: skip
@click.option("--lease-time", type=Duration(), default="1h", show_default=True, help="Time of a lease.")
@click.option("--hook", "hook_path", default="/etc/metal/lease-hook", show_default=True,
              help="Path of the lease hook on the DHCP server.")  # fmt: skip
@click.option("--metalctl", default=lambda: shutil.which("metalctl") or "/usr/local/bin/metalctl",
              help="Path of metalctl on the DHCP server.")  # fmt: skip
@click.option("--kea-hooks", default="/usr/lib/x86_64-linux-gnu/kea/hooks", show_default=True,
              help="Folder of Kea's hook libraries.")  # fmt: skip
@click.option(
    "--output", type=click.Path(path_type=Path, file_okay=False), help="Write all needed files to this folder."
)
@connection_options
def command(server: str, output: Path | None, **options: Any) -> None:
    """Print a configuration with which machines boot from the boot server and with which their leases are reported.

    \b
    SERVER is one of:
      dnsmasq  DHCP and TFTP, both families
      kea      DHCP; it needs tftp besides, and for IPv6 a router that advertises the network
      tftp     dnsmasq's TFTP alone
      hook     the script that dnsmasq and Kea call for each lease

    \b
    Examples:
      metalctl dhcp-config dnsmasq --from live --interface eth1 --subnet 192.0.2.0/24 > /etc/dnsmasq.d/metal.conf
      metalctl dhcp-config hook > /etc/metal/lease-hook
      metalctl dhcp-config kea --from live --subnet 192.0.2.0/24 --ipv6 2001:db8:1::/64 --output .

    Exit codes: 0 done, 1 the running manager could not be read, 2 usage error (with the fix).
    """
    try:
        files = _files(options)
        if output is not None:
            return _write(files.beside(server), output, Path(files.site.hook).name)
        made = files.of(server)
    except site.InvalidSite as exc:
        raise click.UsageError(str(exc)) from None
    if len(made) > 1:
        raise click.UsageError(
            "Kea has a daemon and a file for each family: add --output FOLDER, or give only one of --subnet and --ipv6"
        )
    return click.echo("".join(made.values()), nl=False)


def _write(files: dict[str, str], folder: Path, executable: str) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (folder / name).write_text(text)
            (folder / name).chmod(0o755 if name == executable else 0o644)
            click.echo(str(folder / name))
    except OSError as exc:
        raise click.ClickException(f"{exc.filename}: {exc.strerror}; choose another --output") from None


def _files(options: dict[str, Any]) -> _Files:
    url, notes = _boot_url(options)
    lease: timedelta = options["lease_time"]
    made = site.site(
        site.Site(
            interface=options["interface"],
            boot_url=url,
            subnets=site.subnets(options["subnet"], options["ranges"], options["router"]),
            prefix=site.prefix(options["ipv6"]) if options["ipv6"] else None,
            tftp=site.addresses(options["tftp_server"], "--tftp-server"),
            dns=site.addresses(options["dns"], "--dns"),
            tftp_root=options["tftp_root"],
            efi_binary=options["efi_binary"],
            hook=options["hook_path"],
            lease_seconds=int(lease.total_seconds()),
            notes=notes,
        )
    )
    for option in ("kea_hooks", "metalctl"):
        if not _PLAIN.fullmatch(options[option]):
            name = option.replace("_", "-")
            raise site.InvalidSite(f"--{name} is {options[option]!r}: write an absolute path without blanks")
    return _Files(made, options["kea_hooks"], _hook_command(options))


def _hook_command(options: dict[str, Any]) -> list[str]:
    kubeconfig: Path | None = options["kubeconfig"]
    made = [
        options["metalctl"],
        "lease-hook",
        "--kubeconfig",
        str(kubeconfig.absolute() if kubeconfig else _KUBECONFIG),
    ]
    if options["context"]:
        made += ["--context", options["context"]]
    if options["api_group"] != METAL_GROUP:
        made += ["--api-group", options["api_group"]]
    if any(not word.isprintable() for word in made):
        raise site.InvalidSite("--kubeconfig or --context has a control character: write it without")
    return made


def _boot_url(options: dict[str, Any]) -> tuple[str, tuple[str, ...]]:
    """URL of the boot server, and lines for the comment at the top."""
    config = _config(options["config_file"])
    if options["source"] == "live":
        url, networks = asyncio.run(_live(config, options))
        notes = (f"BMCs are enrolled in {networks}; elsewhere their leases are ignored.",) if networks else ()
        return options["boot_url"] or url, notes
    if options["boot_url"]:
        return options["boot_url"], ()
    if options["config_file"] is None:
        raise site.InvalidSite(
            "the URL of the boot server is unknown: add --from live, --config FILE or --boot-url URL"
        )
    return config.boot_url, ()


def _config(path: Path | None) -> Config:
    try:
        return load(path)
    except ConfigError as exc:
        raise click.UsageError(str(exc)) from None


async def _live(config: Config, options: dict[str, Any]) -> tuple[str, str]:
    """What the leader wrote to its Lease."""
    key: Callable[[str], str] = kinds(options["api_group"]).key
    client = connect(options["kubeconfig"], options["context"])
    try:
        lease = await client.get(LEASE, config.election.lease, config.namespace)
        annotations = lease.metadata.annotations
    except NotFound:
        annotations = {}
    except ApiError as exc:
        raise click.ClickException(f"the running manager could not be read: {exc.message}; give --boot-url") from None
    finally:
        await client.aclose()
    if not annotations.get(key(BOOT_URL)):
        raise click.ClickException(
            f"no manager has written its boot URL to the Lease {config.namespace}/{config.election.lease}: start one "
            "of this version with --leader-elect, or give --boot-url; with another name of the Lease also --config"
        )
    return annotations[key(BOOT_URL)], annotations.get(key(BMC_NETWORKS), "")
