"""The state of Secure Boot over Redfish."""

from typing import Any

import pytest

from metal.bmc.carriers.secure_boot import SecureBootState
from tests.bmc.redfish.machine import fake, redfish, system
from tests.redfish.fakes import SYSTEM

pytestmark = pytest.mark.looptime
PATH = f"{SYSTEM}/SecureBoot"


@pytest.mark.parametrize(
    ("shown", "state", "enforces"),
    [
        ({"SecureBootEnable": True, "SecureBootCurrentBoot": "Enabled", "SecureBootMode": "UserMode"},
         SecureBootState(True, True, "UserMode"), True),
        ({"SecureBootEnable": True, "SecureBootCurrentBoot": "Disabled", "SecureBootMode": "DeployedMode"},
         SecureBootState(True, False, "DeployedMode"), True),
        ({"SecureBootEnable": True, "SecureBootCurrentBoot": "Disabled", "SecureBootMode": "SetupMode"},
         SecureBootState(True, False, "SetupMode"), False),
        ({"SecureBootEnable": False, "SecureBootCurrentBoot": "Enabled"}, SecureBootState(False, True), False),
        ({"SecureBootCurrentBoot": None}, SecureBootState(), False),
    ],
)  # fmt: skip
async def test_the_state_is_what_the_next_start_enforces(
    shown: dict[str, Any], state: SecureBootState, enforces: bool
) -> None:
    """What is set and what was so at the last start are apart; without enrolled keys nothing is refused."""
    bmc = fake(system(SecureBoot={"@odata.id": PATH}))
    bmc.resources[PATH] = {"@odata.id": PATH, **shown}
    found = await redfish(bmc).secure_boot(SYSTEM)
    assert found == state
    assert found.enforces is enforces


async def test_a_system_without_the_resource_has_no_state() -> None:
    """No link, or a link to nothing."""
    assert await redfish(fake()).secure_boot(SYSTEM) is None
    assert await redfish(fake(system(SecureBoot={"@odata.id": PATH}))).secure_boot(SYSTEM) is None
