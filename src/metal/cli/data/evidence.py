"""metalctl evidence"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

import click
import msgspec
from rich.console import Console
from rich.table import Table

from metal.api.core import CONFIG_MAP
from metal.api.kinds import Kinds, kinds
from metal.api.sanitization import DriveErasure, EvidencePhase, Result, SanitizationEvidence
from metal.cli.support.connection import connect, connection_options
from metal.cli.support.durations import spoken
from metal.cli.support.exits import read_failure
from metal.cli.support.table import WIDE, age, printable
from metal.evidence import chain
from metal.evidence.keys import LABEL, public_keys
from metal.evidence.signing import KeyUnusable, PublicKey, SignatureInvalid, load_public, verify
from metal.kube.client.errors import ApiError, NotFound
from metal.kube.client.protocol import Client
from metal.kube.meta.clock import system_clock

T = TypeVar("T")
_OUTPUT = click.option(
    "-o", "--output", type=click.Choice(["table", "json"]), default="table", show_default=True, help="Output format."
)
_SERVER = click.option("--server", default="", metavar="NAME", help="Only evidence of this server.")
_PUBLIC = click.option(
    "--public-key", "public_key", type=click.Path(path_type=Path, dir_okay=False, exists=True), default=None,
    help="File with the trusted public key (PEM). Defaults to the public keys in the API.",
)  # fmt: skip
_NAMESPACE = click.option("--namespace", default="metal-system", show_default=True, help="Namespace of the managers.")


@click.group("evidence")
def command() -> None:
    """List, show and verify the evidence of the sanitization of servers.

    \b
    Examples:
      metalctl evidence list --server rack1-a-system-0
      metalctl evidence show NAME -o json
      metalctl evidence verify --public-key key.pem
    """


@command.command("list")
@_SERVER
@_OUTPUT
@connection_options
def list_command(server: str, output: str, kubeconfig: Path | None, context: str | None, api_group: str) -> None:
    """List all evidence, oldest first: server, policy, phase, drives, and open tasks.

    With -o json: a list of the objects.
    """
    names = kinds(api_group)
    found = _ask(kubeconfig, context, api_group, lambda client: _evidence(client, names, (), server))
    if output == "json":
        click.echo(json.dumps([_plain(one, names) for one in found], indent=2))
    elif not found:
        click.echo("no evidence found: it is created when the drives of a server are erased after a claim")
    else:
        _print(_overview(found, system_clock()))


@command.command("show")
@click.argument("name")
@_OUTPUT
@connection_options
def show_command(name: str, output: str, kubeconfig: Path | None, context: str | None, api_group: str) -> None:
    """Show one evidence with each drive. With -o json: the object."""
    names = kinds(api_group)
    (one,) = _ask(kubeconfig, context, api_group, lambda client: _evidence(client, names, (name,), ""))
    if output == "json":
        click.echo(json.dumps(_plain(one, names), indent=2))
        return
    status = one.status
    click.echo(f"{one.metadata.name}: server {one.spec.server_ref.name}, policy {one.spec.policy}, {_phase(one)}")
    for title, lines in (("open", status.owed), ("remarks", status.remarks)):
        for line in lines:
            click.echo(f"{title}: {printable(line)}")
    for reset in status.firmware:
        click.echo(f"firmware: {reset.action} {reset.result}")
    method = f"{one.spec.boot_method}, " if one.spec.boot_method else ""
    click.echo(f"boot: {method}{one.spec.boot_trust or 'trust unknown'}")
    if status.proves:
        click.echo(f"proves: {printable(status.proves)}")
    _print(_drives(one))


@command.command("verify")
@click.argument("chosen", metavar="[NAME]...", nargs=-1)
@_SERVER
@_PUBLIC
@_NAMESPACE
@_OUTPUT
@connection_options
def verify_command(
    chosen: tuple[str, ...], server: str, public_key: Path | None, namespace: str, output: str,
    kubeconfig: Path | None, context: str | None, api_group: str,
) -> None:  # fmt: skip
    """Verify the signatures of the named evidence, or of all completed evidence, and that none is missing.

    Each signed evidence names the one before it of the same machine with its digest, and a ConfigMap in the namespace
    of the managers names the last one. Evidence that is missing or was replaced is reported under its name.

    The record owed-... of a deleted Server is signed when its drives are erased. Until then it is listed as open; that
    is no failure unless it is named.

    Use --public-key FILE where possible: a client that can change evidence in the API can usually change keys too. With
    -o json: a list of objects with name, server, holds, open, keyID and problem.

    Exit codes: 0 all signatures are valid and no evidence is missing, 1 a signature is invalid or evidence is missing,
    2 usage error.
    """
    names = kinds(api_group)
    given = None if public_key is None else _load(public_key)

    async def read(client: Client) -> list["_Checked"]:
        keys = given if given is not None else await _keys(client, names, namespace)
        found = await _evidence(client, names, chosen, server)
        checked = [
            _check(one, keys, named=bool(chosen))
            for one in found
            if chosen or one.status.phase != EvidencePhase.RUNNING
        ]
        before = {one.status.previous.name for one in found if one.status.previous is not None}
        expected = before if chosen or server else None
        return _with_chain(checked, await _chain_problems(client, names, namespace), expected)

    checked = _ask(kubeconfig, context, api_group, read)
    if output == "json":
        click.echo(json.dumps([one.as_json() for one in checked], indent=2))
    else:
        for one in checked:
            click.echo(f"{one.name}: {one.outcome}")
    if broken := sum(bool(one.problem) for one in checked):
        raise click.ClickException(f"{broken} of {len(checked)} signatures are not valid, or their evidence is missing")
    if output == "table":
        still_open = sum(one.is_open for one in checked)
        valid = f"{len(checked) - still_open} signatures are valid, and no evidence is missing"
        click.echo(f"{valid}; {still_open} records are open" if still_open else valid)


@dataclass(frozen=True)
class _Checked:
    name: str
    server: str
    key: str
    problem: str
    is_open: bool = False

    @property
    def outcome(self) -> str:
        return self.problem or (
            "open: its drives are not erased yet" if self.is_open else f"valid, signed with {self.key}"
        )

    def as_json(self) -> dict[str, Any]:
        holds = not self.problem and not self.is_open
        return {
            "name": self.name, "server": self.server, "holds": holds, "open": self.is_open, "keyID": self.key,
            "problem": self.problem,
        }  # fmt: skip


def _check(evidence: SanitizationEvidence, keys: dict[str, PublicKey], *, named: bool) -> _Checked:
    """The result for one record; an open one is a failure only when it was asked for."""
    name, server, problem = evidence.metadata.name, evidence.spec.server_ref.name, ""
    # a signed record from which phase and signature were removed is missing from its chain (`_with_chain`)
    if not named and not evidence.status.phase and evidence.status.signature is None:
        return _Checked(name, server, "", "", is_open=True)
    try:
        verify(evidence, keys)
    except SignatureInvalid as exc:
        problem = str(exc)
    signature = evidence.status.signature
    key = signature.key_id if signature is not None else ""
    return _Checked(name, server, printable(key), printable(problem))


async def _chain_problems(client: Client, names: Kinds, namespace: str) -> dict[str, list[str]]:
    """What is wrong with the chains of all machines, by the name of the evidence."""
    # In this order: a record is written before its ConfigMap, so one that is completed meanwhile is not missed.
    maps = (await client.list(CONFIG_MAP, namespace, labels=f"{names.key(chain.HEAD)}=true")).items
    everything = (await client.list(names.evidence)).items
    return chain.problems(everything, chain.heads(maps))


def _with_chain(
    checked: list[_Checked], problems: dict[str, list[str]], expected: set[str] | None
) -> list[_Checked]:  # fmt: skip
    """The results with the problems of the chains, and of evidence that is missing: all, or only what is expected."""
    seen = {one.name for one in checked}
    results = [replace(one, problem=one.problem or printable("; ".join(problems.get(one.name, ())))) for one in checked]
    lost = [_Checked(name, "", "", printable("; ".join(texts))) for name, texts in sorted(problems.items())]
    return results + [one for one in lost if one.name not in seen and (expected is None or one.name in expected)]


def _load(path: Path) -> dict[str, PublicKey]:
    try:
        key = load_public(path.read_bytes())
    except (OSError, KeyUnusable) as exc:
        raise click.UsageError(f"--public-key {path}: {exc}") from None
    return {key.id: key}


async def _keys(client: Client, names: Kinds, namespace: str) -> dict[str, PublicKey]:
    found = await client.list(CONFIG_MAP, namespace, labels=f"{names.key(LABEL)}=public")
    return public_keys(found.items)


async def _evidence(client: Client, names: Kinds, chosen: tuple[str, ...], server: str) -> list[SanitizationEvidence]:
    if chosen:
        found = [await _one(client, names, name) for name in chosen]
    else:
        found = list((await client.list(names.evidence)).items)
    wanted = [one for one in found if server in ("", one.spec.server_ref.name)]
    return sorted(wanted, key=lambda one: (one.metadata.creation_timestamp or datetime.min.replace(tzinfo=UTC),
                                           one.metadata.name))  # fmt: skip


async def _one(client: Client, names: Kinds, name: str) -> SanitizationEvidence:
    try:
        return await client.get(names.evidence, name)
    except NotFound:
        raise click.ClickException(f"evidence {name} not found; `metalctl evidence list` shows all") from None


def _ask(kubeconfig: Path | None, context: str | None, group: str, read: Callable[[Client], Awaitable[T]]) -> T:
    async def asked() -> T:
        client = connect(kubeconfig, context)
        try:
            return await read(client)
        finally:
            await client.aclose()

    try:
        return asyncio.run(asked())
    except ApiError as exc:
        raise read_failure(exc, group) from None


def _plain(evidence: SanitizationEvidence, names: Kinds) -> dict[str, Any]:
    kind = names.evidence
    return {"apiVersion": kind.api_version, "kind": kind.kind, **msgspec.to_builtins(evidence)}


def _phase(evidence: SanitizationEvidence) -> str:
    return f"{evidence.status.phase or 'Open'}{', accepted' if evidence.status.accepted_at else ''}"


def _overview(found: list[SanitizationEvidence], now: datetime) -> Table:
    table = _table("NAME", "SERVER", "POLICY", "PHASE", "DRIVES", "ENDED", "OPEN")
    for one in found:
        status = one.status
        table.add_row(
            one.metadata.name, printable(one.spec.server_ref.name), one.spec.policy, _phase(one),
            str(len(status.drives)), age(status.ended_at, now), printable("; ".join(status.owed)),
        )  # fmt: skip
    return table


def _drives(evidence: SanitizationEvidence) -> Table:
    table = _table("DRIVE", "SERIAL", "SLOT", "RESULT", "CLASS", "METHOD", "READ BACK", "MESSAGE")
    for drive in evidence.status.drives:
        read = f"{drive.samples_read}, {drive.samples_differ} differ" if drive.samples_read else "no"
        cells = (drive.name, drive.serial_number, drive.slot, _result(drive), drive.class_, drive.method, read)
        table.add_row(*map(printable, cells), printable(drive.message))
    return table


def _result(drive: DriveErasure) -> str:
    """Return the result, with the progress while the drive is being erased."""
    if drive.result != Result.RUNNING:
        return drive.result
    left = "" if drive.seconds_left is None else f", {spoken(timedelta(seconds=drive.seconds_left))} left"
    return f"{drive.result}, {drive.percent} %{left}"


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def _print(table: Table) -> None:
    console = Console(markup=False)
    console.width = console.width if console.is_terminal else WIDE
    console.print(table)
