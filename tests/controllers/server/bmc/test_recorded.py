"""Operations on a BMC have names, and the system is verified before a change."""

from metal.bmc.calls import WRITES
from metal.controllers.server.bmc.recorded import _NAMES

OF_THE_BMC = {"reset_manager", "subscribe", "unsubscribe", "send_test_event"}
"""Changes of the BMC itself, which the Server controller does not request."""


def test_every_change_of_a_system_has_a_name() -> None:
    """Without one the address may lead to another machine, and that machine would be changed."""
    assert set(_NAMES) >= WRITES - OF_THE_BMC
