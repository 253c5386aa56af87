"""Sizes as Kubernetes quantities."""

_UNITS = (("Ti", 1 << 40), ("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10))


def quantity(size: int) -> str:
    """Bytes as a Kubernetes quantity in the largest binary unit that divides them; empty for 0."""
    if size <= 0:
        return ""
    for unit, factor in _UNITS:
        if size % factor == 0:
            return f"{size // factor}{unit}"
    return str(size)
