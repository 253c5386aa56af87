"""The signing key for records of outstanding sanitizations, which stay open while it is unusable."""

from metal.controllers.server.reasons import Reason
from metal.controllers.server.scope import Scope
from metal.evidence.chain import Signer
from metal.evidence.signing import KeyUnusable


async def find(scope: Scope, name: str) -> Signer | None:
    """The key with which to close this record; None, with an Event, when it is unusable. Raises ApiError.

    The server does not wait for it: its drives are erased, and erased twice is better than never.
    """
    try:
        return await scope.deps.keys.signing_key()
    except KeyUnusable as exc:
        text = (
            f"SanitizationEvidence {name} stays open, because it cannot be signed: {exc}. It is closed by the next "
            "erasure of its drives, which the next discovery requests"
        )
        scope.record_event(Reason.SIGNING_KEY_UNUSABLE, text, warning=True)
        return None
