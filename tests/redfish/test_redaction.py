"""What errors of a BMC repeat of a request."""

import pytest

from metal.redfish.errors import BMCBadRequest
from metal.redfish.messages import LONGEST
from metal.redfish.redaction import Redaction
from tests.redfish.fakes import PASSWORD, SYSTEM, FakeBMC, answer, client_of, complaint


@pytest.mark.parametrize(
    ("said", "repeated"),
    [
        ("cannot read http://10.0.0.5:8082/boot/x/t0ken/a.iso now", "cannot read http://10.0.0.5:8082/*** now"),
        ("cannot read 'https://[fd77::1]/boot/t0ken'.", "cannot read 'https://[fd77::1]/***'."),
        ("HTTPS://user:pass@host/share/t0ken", "HTTPS://host/***"),
        ("see https://10.0.0.1/redfish/v1/Systems/1", "see https://10.0.0.1/redfish/v1/Systems/1"),
        ("see /redfish/v1/Systems/1 or http://dmtf.org", "see /redfish/v1/Systems/1 or http://dmtf.org"),
        ("cut at http://10.0.0.5/boot/t0k…", "cut at http://10.0.0.5/***"),
    ],
)
def test_paths_of_urls_on_other_hosts_are_removed(said: str, repeated: str) -> None:
    """Also where nobody added them: a manager that restarted does not know what the former one sent."""
    assert Redaction()(said) == repeated


def test_what_was_added_is_removed_alone_and_in_parts() -> None:
    """BMCs quote a path without its host, and a nonce that is no URL at all."""
    redact = Redaction("hunter2")
    redact.add("http://10.0.0.5/boot/38947555/c2VjcmV0LXRva2Vu/s1.iso")
    redact.add("bm9uY2Utb2YtYm9vdA")
    assert redact("no boot/38947555/c2VjcmV0LXRva2Vu/s1.iso") == "no boot/38947555/***/s1.iso"
    assert redact("AssetTag bm9uY2Utb2YtYm9vdA, hunter2") == "AssetTag ***, ***"
    assert "c2VjcmV0" not in repr(redact)


def test_short_words_stay() -> None:
    """A user's asset tag such as R2 is a part of many sentences."""
    redact = Redaction()
    redact.add("R2")
    assert redact("R2-D2 is not allowed") == "R2-D2 is not allowed"


def test_the_oldest_of_many_is_forgotten() -> None:
    """A client lives for months; each boot adds a token."""
    redact = Redaction()
    for number in range(100):
        redact.add(f"{number:032}")
    assert redact(f"{99:032} {0:032}") == f"*** {0:032}"


@pytest.mark.looptime
async def test_an_error_contains_neither_the_password_nor_what_was_added() -> None:
    """The BMC quotes the body of the request, also where a long message is cut in the middle of it."""
    bmc, nonce = FakeBMC(), "bm9uY2Utb2YtYm9vdA"
    client = client_of(bmc)
    client.redact.add(nonce)
    bmc.fault("PATCH", SYSTEM, answer(400, complaint("x" * (LONGEST - 10) + nonce)))
    with pytest.raises(BMCBadRequest) as cut:
        await client.patch(SYSTEM, {"AssetTag": nonce})
    assert nonce[:4] not in str(cut.value)
    bmc.fault("PATCH", SYSTEM, answer(400, complaint(f"The value {nonce} of AssetTag by {PASSWORD} is not allowed.")))
    with pytest.raises(BMCBadRequest, match=r"The value \*\*\* of AssetTag by \*\*\* is not allowed"):
        await client.patch(SYSTEM, {"AssetTag": nonce})
