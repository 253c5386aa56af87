"""What to boot on a machine: the label, the BMC, the names of processors, the probe's report, the default."""

import pytest

from metal.api.meta import ObjectMeta
from metal.api.server import Processor, Server, ServerStatus
from metal.machine import architecture


def cpu(instruction_set: str = "", kind: str = "", model: str = "", type: str = "CPU") -> Processor:
    return Processor(id="1", type=type, architecture=kind, instruction_set=instruction_set, model=model)


@pytest.mark.parametrize(
    ("cpus", "summary", "expected"),
    [
        ([cpu("x86-64", "x86")], "", "amd64"),
        ([cpu("ARM-A64", "ARM"), cpu("ARM-A64", "ARM")], "", "arm64"),
        ([cpu("", "ARM")], "", "arm64"),
        ([cpu("OEM", "x86")], "", "amd64"),
        ([cpu("PowerISA", "Power")], "", "powerisa"),
        ([cpu("x86-64"), cpu("ARM-A64")], "", ""),
        ([cpu("x86-64"), cpu("ARM-A64", type="FPGA")], "", "amd64"),
        ([cpu("", "OEM", "Ampere(R) Altra(R) Max Processor")], "", "arm64"),
        ([cpu(model="Intel(R) Xeon(R) Gold 6338")], "", "amd64"),
        ([], "AMD EPYC 7763 64-Core Processor", "amd64"),
        ([], "ARMv8 Processor", "arm64"),
        ([cpu(model="Something")], "", ""),
        ([cpu("x86-64\n" * 20)], "", ""),
        ([], "", ""),
    ],
)
def test_a_bmc_names_the_architecture(cpus: list[Processor], summary: str, expected: str) -> None:
    """Instruction set, architecture, or a well-known name; what is contradictory or unknown names none."""
    assert architecture.of_processors(cpus, summary) == expected


@pytest.mark.parametrize(
    ("report", "expected"),
    [
        ({"architecture": "aarch64"}, "arm64"),
        ({"architecture": "x86_64"}, "amd64"),
        ({}, ""),
        ({"architecture": 7}, ""),
    ],
)
def test_the_probe_reports_the_architecture_of_its_kernel(report: dict[str, object], expected: str) -> None:
    """In the words of Linux; a probe of a former version reports none."""
    assert architecture.of_report(report) == expected


@pytest.mark.parametrize(
    ("label", "status", "expected"),
    [
        ("", ServerStatus(), architecture.Found("amd64", assumed=True)),
        ("", ServerStatus(architecture="arm64"), architecture.Found("arm64")),
        ("", ServerStatus(processors=(cpu("ARM-A64"),)), architecture.Found("arm64")),
        ("aarch64", ServerStatus(architecture="amd64"), architecture.Found("arm64")),
    ],
)
def test_a_label_comes_first_and_the_default_last(label: str, status: ServerStatus, expected: object) -> None:
    """A Server that a former version discovered has only the processors in its status."""
    server = Server(metadata=ObjectMeta(labels={"x/architecture": label}), status=status)
    assert architecture.of_server(server, "x/architecture", "amd64") == expected
