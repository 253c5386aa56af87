"""Advice about errors, and logging out."""

import asyncio

import pytest

from metal.bmc.errors import BMCAuthError, BMCError, BMCServerError, BMCTLSError, BMCUnreachable
from metal.controllers.shared.access.sessions import explain, log_out
from tests.controllers.rack import RackPool


@pytest.mark.parametrize(
    ("exc", "advice"),
    [
        (BMCTLSError("The certificate is not trusted."), "tls.fingerprint"),
        (BMCAuthError("Refused."), "correct the BMCSecret"),
        (BMCUnreachable("No route."), "check its address"),
        (BMCServerError("It answered 500."), "the operator retries"),
    ],
)
def test_an_error_comes_with_what_to_do(exc: BMCError, advice: str) -> None:
    """Error and advice are one sentence, regardless of the punctuation of the error."""
    text = explain(exc)
    assert text.startswith(str(exc).rstrip("."))
    assert advice in text
    assert ".;" not in text


@pytest.mark.looptime
async def test_hanging_up_ends_in_time() -> None:
    """A BMC that does not answer the logout delays it by the limit and no longer."""
    pool = RackPool(drop_hangs=True)
    start = asyncio.get_running_loop().time()
    await log_out(pool, "b1", 5.0)
    assert asyncio.get_running_loop().time() - start == pytest.approx(5.0)
    assert pool.dropped == ["b1"]
