"""metalctl apply"""

from collections.abc import Sequence

import click

from metal.cli.objects.manifests import Manifest, file_option, read
from metal.cli.support import dynamic
from metal.cli.support.context import CommandContext, in_namespace
from metal.cli.support.dynamic import Obj
from metal.cli.support.exits import EXITS, Missing, failure
from metal.cli.support.output import emit, name_of, output_option
from metal.cli.support.resources import api_resources, of_object
from metal.kube.client.errors import ApiError, Conflict, NotFound
from metal.kube.client.resources import Resource

_SERVER_FIELDS = ("managedFields", "resourceVersion", "generation", "uid", "creationTimestamp")


@click.command("apply", epilog=EXITS)
@file_option
@click.option(
    "--server-side", is_flag=True, help="No effect: apply is always server-side. For compatibility with kubectl."
)
@click.option("--force-conflicts", is_flag=True, help="Take over fields that another manager owns.")
@click.option("--dry-run", is_flag=True, help="Validate on the API server without changing anything.")
@output_option
@in_namespace
async def command(
    ctx: CommandContext,
    files: tuple[str, ...],
    server_side: bool,
    force_conflicts: bool,
    dry_run: bool,
    output: str | None,
) -> None:
    """Create or update the objects in files.

    This is a server-side apply with field manager metalctl: fields that a file no longer has are removed, fields of
    other managers are kept. Objects are applied in the order of the files, up to the first error.
    """
    if not files:
        raise click.UsageError("set at least one -f FILE (- for standard input)")
    manifests = read(files)
    known = await api_resources(ctx.http)
    objects = []
    for manifest in manifests:
        try:
            resource = _kind(known, manifest)
        except Missing:  # an earlier CRD of the files may define the kind
            known = await api_resources(ctx.http)
            resource = _kind(known, manifest)
        placed = manifest.within(ctx.namespace) if resource.namespaced else manifest
        obj, what = await _applied(ctx, resource, placed, force=force_conflicts, dry_run=dry_run)
        objects.append(obj)
        if output is None:
            click.echo(f"{name_of(obj)} {what}{' (dry run)' if dry_run else ''}")
    if output is not None:
        emit(objects, output, one=True)


def _kind(known: Sequence[Resource], manifest: Manifest) -> Resource:
    return of_object(known, manifest.obj["apiVersion"], manifest.obj["kind"])


async def _applied(
    ctx: CommandContext, resource: Resource, manifest: Manifest, *, force: bool, dry_run: bool
) -> tuple[Obj, str]:
    metadata = manifest.obj["metadata"]
    try:
        before = await _before(ctx, resource, metadata["name"], metadata.get("namespace", ""))
        after = await dynamic.apply(ctx.http, resource, manifest.obj, force=force, dry_run=dry_run)
    except Conflict as exc:
        raise click.ClickException(
            f"{manifest} ({manifest.where}): {exc.message}. To take over the fields: --force-conflicts"
        ) from None
    except ApiError as exc:
        refused = failure(exc)
        raise type(refused)(f"{manifest} ({manifest.where}): {refused.message}") from None
    if before is None:
        return after, "created"
    return after, "unchanged" if _content(before) == _content(after) else "configured"


async def _before(ctx: CommandContext, resource: Resource, name: str, namespace: str) -> Obj | None:
    try:
        return await dynamic.get(ctx.http, resource, name, namespace)
    except NotFound:
        return None


def _content(obj: Obj) -> Obj:
    metadata = {key: value for key, value in obj["metadata"].items() if key not in _SERVER_FIELDS}
    return {**{key: value for key, value in obj.items() if key != "status"}, "metadata": metadata}
