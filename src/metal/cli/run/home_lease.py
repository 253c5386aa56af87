"""The Lease of an embedded API, when its process starts.

`metalctl up` is a candidate for the Lease like every `metalctl manager` that uses its API. After a crash it would wait
until its own former Lease expires, and in an empty data folder for a leader that cannot exist. Before the API listens,
both are known: a holder with PREFIX was a process that held the lock of this data folder, which this process holds now,
so it has ended; and an empty data folder had no holder. In both cases the Lease is released. Every other Lease is left
as it is: its holder may act, and this process waits for it as on a cluster.
"""

import contextlib

from metal.api.core import LEASE, NAMESPACE
from metal.kube.client.errors import AlreadyExists, NotFound
from metal.kube.client.protocol import Client
from metal.kube.controller.election import RELEASED

PREFIX = "metalctl-up_"
"""Beginning of the identity of a process that serves the API itself."""


async def release_former(client: Client, name: str, namespace: str, *, empty: bool) -> None:
    """Release the Lease where no other process can hold it. Call it before the API listens. Raises ApiError.

    empty: whether the data folder was empty at the start.
    """
    spec = {"holderIdentity": "", "leaseDurationSeconds": RELEASED}
    try:
        lease = await client.get(LEASE, name, namespace)
    except NotFound:
        if empty:
            await _create(client, name, namespace, spec)
        return
    if lease.spec.holder_identity.startswith(PREFIX):
        body = {"metadata": {"resourceVersion": lease.metadata.resource_version}, "spec": spec}
        await client.patch(LEASE, name, body, namespace)


async def _create(client: Client, name: str, namespace: str, spec: dict[str, object]) -> None:
    with contextlib.suppress(AlreadyExists):
        await client.create(NAMESPACE, {"metadata": {"name": namespace}})
    await client.create(LEASE, {"metadata": {"name": name, "namespace": namespace}, "spec": spec})
