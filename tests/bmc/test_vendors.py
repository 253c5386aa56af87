"""The table of vendor facts, row by row."""

import pytest

from metal.bmc.vendors import NO_QUIRKS, TABLE, Machine, Quirks, Row, quirks_for, restart_command, tpm_clear_for


@pytest.mark.behaviour(
    "BMC", "The SSH restart command is known for each vendor; for an unknown manufacturer no command is sent."
)
@pytest.mark.parametrize(
    ("manufacturer", "command"),
    [
        ("Dell Inc.", "racreset"), ("HPE", "cd /map1 && reset"), ("Hewlett Packard Enterprise", "cd /map1 && reset"),
        ("LENOVO", "resetsp"), ("Contoso", ""), ("", ""), ("Shpet", ""),
    ],
)  # fmt: skip
def test_each_vendor_has_its_command(manufacturer: str, command: str) -> None:
    """The spelling of the manufacturer does not matter; an unknown manufacturer has none."""
    assert restart_command(manufacturer) == command


def test_no_row_of_tpm_attributes_hides_another() -> None:
    """Each row is the first one for some manufacturer."""
    machines = [Machine(name) for name in ("Dell Inc.", "HPE", "NVIDIA", "Lenovo")]
    known = {row.tpm_clear for row in TABLE if row.tpm_clear is not None}
    found = {tpm_clear_for(machine, {clear.attribute: ""}) for clear in known for machine in machines}
    assert found - {None} == known


@pytest.mark.parametrize(
    ("machine", "quirks"),
    [
        (Machine("Supermicro", "SYS-1"), Quirks(repeat_boot_mode=True)),
        (Machine("Super Micro Computer, Inc."), Quirks(repeat_boot_mode=True)),
        (Machine("ASRockRack"), Quirks(boot_in_settings=True)),
        (Machine("Lenovo", "GB300 NVL"), Quirks(no_expand=True)),
        (Machine("Lenovo", "SR650"), NO_QUIRKS),
        (Machine("Dell Inc."), NO_QUIRKS),
        (Machine(), NO_QUIRKS),
    ],
)
def test_each_row_of_quirks_matches_its_machines_and_no_others(machine: Machine, quirks: Quirks) -> None:
    """Case and the spelling of the manufacturer do not matter."""
    assert quirks_for(machine) == quirks


def test_quirks_of_several_rows_add_up_and_firmware_counts() -> None:
    """A row may be for one firmware only."""
    table = (
        Row("test", "acme", quirks=Quirks(no_expand=True)),
        Row("test", "acme", firmware=r"^1\.", quirks=Quirks(repeat_boot_mode=True)),
    )
    assert quirks_for(Machine("ACME", "", "1.2"), table) == Quirks(no_expand=True, repeat_boot_mode=True)
    assert quirks_for(Machine("ACME", "", "2.0"), table) == Quirks(no_expand=True)


def test_every_row_has_a_source_and_a_fact() -> None:
    """A row without a source cannot be checked or removed."""
    for row in TABLE:
        assert row.source
        assert row.quirks != NO_QUIRKS or row.tpm_clear is not None or row.restart_command
