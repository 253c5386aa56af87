"""The SSH host key of a BMC: remembered in an annotation at first sight, refused when it is another one later.

Before a password is sent the key is known: at first sight it is read without a login, and written down.
"""

import asyncio

import asyncssh
import click

from metal.cli.console.way import Way
from metal.cli.objects import plain
from metal.cli.onapi import Desk

_ANNOTATION = "ssh-host-key"
CONNECT = 10.0
"""Seconds that a BMC may take to answer."""


def annotation(desk: Desk) -> str:
    """The annotation that holds the key, in OpenSSH's form."""
    return desk.kinds.key(_ANNOTATION)


async def known(desk: Desk, way: Way, *, forget: bool) -> asyncssh.SSHKey:
    """The key that the BMC must have. Raises click.ClickException."""
    written = (way.keeper["metadata"].get("annotations") or {}).get(annotation(desk))
    if written and not forget:
        try:
            return asyncssh.import_public_key(written)
        except asyncssh.KeyImportError:
            raise click.ClickException(
                f"the annotation {annotation(desk)} of {_name(way)} is no SSH key: --forget-host-key replaces it"
            ) from None
    key = await presented(way)
    await _write_down(desk, way, key)
    click.echo(f"the host key of {_name(way)} is {key.get_fingerprint()} from now on", err=True)
    return key


async def presented(way: Way) -> asyncssh.SSHKey:
    """The key that the BMC has now. Raises click.ClickException."""
    try:
        async with asyncio.timeout(CONNECT):
            key = await asyncssh.get_server_host_key(way.address, way.port, config=None)
    except (OSError, TimeoutError, asyncssh.Error) as exc:
        raise unreachable(way, exc) from None
    if key is None:
        raise click.ClickException(f"the BMC at {way.address} port {way.port} shows no host key: is SSH enabled on it?")
    return key


async def changed(way: Way, pinned: asyncssh.SSHKey, exc: asyncssh.Error) -> click.ClickException:
    """What to say when there is no agreement on the key: another one is shown now, or it is not about the key."""
    now = (await presented(way)).get_fingerprint()
    if now == pinned.get_fingerprint():
        return unreachable(way, exc)
    return click.ClickException(
        f"the host key of {_name(way)} has changed: {pinned.get_fingerprint()} is known, {now} was shown. The password "
        "was not sent. When the BMC was exchanged or reset: --forget-host-key"
    )


def unreachable(way: Way, exc: BaseException) -> click.ClickException:
    """What to say when there is no SSH."""
    why = str(exc) or type(exc).__name__
    return click.ClickException(f"no SSH at {way.address} port {way.port}: {why}. Is it enabled on the BMC?")


async def _write_down(desk: Desk, way: Way, key: asyncssh.SSHKey) -> None:
    meta = way.keeper["metadata"]
    text = key.export_public_key("openssh").decode().strip()
    body = {"metadata": {"uid": meta["uid"], "annotations": {annotation(desk): text}}}
    await plain.merge(desk.http, way.keeper_kind, meta["name"], "", body)


def _name(way: Way) -> str:
    return f"{way.keeper['kind']} {way.keeper['metadata']['name']}"
