"""Kernels of simulated images: EFI programs, whose header names the architecture on which they start (PE format)."""

import struct

_MAGIC, _AT = b"MZ", 68
"""The start of an EFI program, and where `metal.sim.images.efi_program` has its machine type."""
_MACHINES = {"amd64": 0x8664, "arm64": 0xAA64}


def of_architecture(kernel: bytes, architecture: str) -> bytes:
    """The kernel, with this architecture in its header if it has one."""
    if not kernel.startswith(_MAGIC):
        return kernel
    return kernel[:_AT] + struct.pack("<H", _MACHINES[architecture]) + kernel[_AT + 2 :]


def starts_on(kernel: bytes, architecture: str) -> bool:
    """Whether the kernel starts on this architecture; one without a header starts everywhere."""
    return kernel == of_architecture(kernel, architecture)
