"""Kernels of simulated images: their first bytes name the architecture on which they start."""


def mark(architecture: str) -> bytes:
    """The first bytes of a kernel for an architecture."""
    return f"kernel for {architecture}\n".encode()


def starts_on(kernel: bytes, architecture: str) -> bool:
    """Whether the kernel starts on this architecture; one without a mark starts everywhere."""
    return not kernel.startswith(b"kernel for ") or kernel.startswith(mark(architecture))
