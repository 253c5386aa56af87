"""The architecture of a machine, as OCI images name it (amd64, arm64): what to boot on it.

Most BMCs say it in the inventory. Where one does not, the probe's report says it for later boots, and the first boot
uses the default of the site, unless a label of the Server names another one.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from metal.api.server import Processor, Server

LABEL = "architecture"
"""Label of a Server (without the API group): what an administrator says, which takes precedence."""
_NAMES = {
    "x86-64": "amd64",
    "x86_64": "amd64",
    "x86": "amd64",
    "arm-a64": "arm64",
    "aarch64": "arm64",
    "arm": "arm64",
    "arm-a32": "arm",
    "oem": "",
}
"""Names of DSP0268 (InstructionSet, ProcessorArchitecture) and of Linux (uname) as OCI writes them. No server with a
BMC has 32-bit processors only."""
_MODELS = (
    (re.compile(r"\b(intel|xeon|amd|epyc|opteron|ryzen)\b", re.IGNORECASE), "amd64"),
    (
        re.compile(r"\b(arm(v[89]\S*)?|ampere|altra|neoverse|cortex|thunderx\d?|kunpeng|grace)\b", re.IGNORECASE),
        "arm64",
    ),
)
"""Words in the names of processors: OpenBMC gives names of Arm processors and no instruction set."""
_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,31}")


@dataclass(frozen=True)
class Found:
    """An architecture, and whether it is only the default of the site."""

    name: str
    assumed: bool = False


def named(text: str) -> str:
    """The name that OCI uses; an unknown word stays, so that it matches no image; empty where nothing is said."""
    word = text.strip().lower()
    word = _NAMES.get(word, word)
    return word if _NAME.fullmatch(word) else ""


def of_processors(processors: Iterable[Processor], summary: str = "") -> str:
    """What a BMC says: instruction set, architecture, or else the names of the processors; empty if not clear.

    summary: the name of the processors in the system's own resource.
    """
    cpus = [cpu for cpu in processors if cpu.type in ("", "CPU")]
    found = {named(cpu.instruction_set) or named(cpu.architecture) for cpu in cpus} - {""}
    if not found:
        found = set(map(_of_model, (*(f"{cpu.manufacturer} {cpu.model}" for cpu in cpus), summary))) - {""}
    return found.pop() if len(found) == 1 else ""


def of_report(report: Mapping[str, object]) -> str:
    """What the kernel of the probe reports; empty from an older probe."""
    said = report.get("architecture")
    return named(said) if isinstance(said, str) else ""


def of_server(server: Server, label: str, default: str) -> Found:
    """What to boot on a server. `label` is the key of the label, `default` the architecture of the site."""
    status = server.status
    said = named(server.metadata.labels.get(label, "")) or status.architecture or of_processors(status.processors)
    return Found(said or default, assumed=not said)


def _of_model(text: str) -> str:
    found = {architecture for words, architecture in _MODELS if words.search(text)}
    return found.pop() if len(found) == 1 else ""
