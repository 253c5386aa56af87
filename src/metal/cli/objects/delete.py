"""metalctl delete"""

from datetime import timedelta

import click

from metal.cli.objects.manifests import file_option, read
from metal.cli.objects.references import Reference, kind_name, named
from metal.cli.support import dynamic
from metal.cli.support.completing import KIND_OR_OBJECT
from metal.cli.support.context import CommandContext, each, in_namespace
from metal.cli.support.exits import EXITS
from metal.cli.support.progress import Progress
from metal.cli.support.resources import api_resources, of_object
from metal.cli.support.waiting import timeout_option, wait_until_deleted
from metal.kube.client.errors import NotFound


@click.command("delete", epilog=EXITS)
@click.argument("what", nargs=-1, metavar="KIND NAME... | KIND/NAME...", type=KIND_OR_OBJECT)
@file_option
@click.option("--ignore-not-found", is_flag=True, help="Treat missing objects as deleted.")
@click.option("--wait", is_flag=True, help="Wait until the objects no longer exist.")
@timeout_option
@in_namespace
async def command(
    ctx: CommandContext,
    what: tuple[str, ...],
    files: tuple[str, ...],
    ignore_not_found: bool,
    wait: bool,
    timeout: timedelta,
) -> None:
    """Delete objects by name or from files, with the objects that they own.

    A deleted Server is created again as long as its BMC exists. To take a server out of use, `metalctl cordon` or
    `metalctl park` it.
    """
    if bool(what) == bool(files):
        raise click.UsageError("name objects, or set -f FILE")
    targets = await _in_files(ctx, files) if files else await _by_name(ctx, what)
    progress = Progress()

    async def one(label: str) -> None:
        reference, namespace = targets[label]
        try:
            obj = await dynamic.get(ctx.http, reference.resource, reference.name, namespace)
            await dynamic.delete(ctx.http, reference.resource, reference.name, namespace, uid=obj["metadata"]["uid"])
        except NotFound:
            if not ignore_not_found:
                raise
            return
        if wait:
            await wait_until_deleted(ctx.http, reference.resource, obj, timeout, progress)
        progress.clear()
        click.echo(f"{label} deleted")

    await each(targets, one)


async def _by_name(ctx: CommandContext, words: tuple[str, ...]) -> dict[str, tuple[Reference, str]]:
    return {str(reference): (reference, ctx.namespace) for reference in await named(ctx, words)}


async def _in_files(ctx: CommandContext, files: tuple[str, ...]) -> dict[str, tuple[Reference, str]]:
    """Return the objects of the files in reverse order: later objects may depend on earlier ones."""
    known, found = await api_resources(ctx.http), {}
    for manifest in reversed(read(files)):
        resource = of_object(known, manifest.obj["apiVersion"], manifest.obj["kind"])
        metadata = manifest.obj["metadata"]
        namespace = metadata.get("namespace") or ctx.namespace
        label = f"{kind_name(resource)}/{metadata['name']}"
        if namespace != ctx.namespace and resource.namespaced:
            label += f" in {namespace}"
        found[label] = (Reference(resource, metadata["name"]), namespace)
    return found
