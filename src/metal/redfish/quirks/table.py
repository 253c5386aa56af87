"""The table of quirks. A row needs a reason a reader can check, and a test."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Quirks:
    """Deviations, all off by default."""

    repeat_boot_mode: bool = False
    """A boot override without the mode falls back to the BMC's default mode, so UEFI is always said."""
    boot_in_settings: bool = False
    """Boot overrides are only taken by the @Redfish.Settings object, not by the system itself."""
    no_expand: bool = False
    """Expanded collections lack properties that the members themselves have."""


@dataclass(frozen=True)
class Row:
    """Regular expressions, searched without regard to case; an empty one matches all."""

    manufacturer: str
    quirks: Quirks
    why: str
    model: str = ""
    firmware: str = ""


TABLE: tuple[Row, ...] = (
    Row(
        manufacturer=r"super\s*micro",
        quirks=Quirks(repeat_boot_mode=True),
        why="A PATCH without BootSourceOverrideMode resets the mode (DMTF/Redfishtool#106, metal-operator#607).",
    ),
    Row(
        manufacturer=r"asrock",
        quirks=Quirks(boot_in_settings=True),
        why="AMI firmware moved boot properties to the FutureState resource (DMTF/Redfish-Tacklebox#144).",
    ),
    Row(
        manufacturer=r"lenovo",
        model=r"gb300",
        quirks=Quirks(no_expand=True),
        why="AMI firmware leaves required properties out of expanded members (nv-redfish#118).",
    ),
)
