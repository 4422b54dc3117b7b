"""Bytes as people read them."""


def size(count: int) -> str:
    """In the largest unit that leaves at least one before the point."""
    for unit, factor in (("GiB", 1 << 30), ("MiB", 1 << 20)):
        if count >= factor:
            return f"{count / factor:.1f} {unit}"
    return f"{count / 1024:.0f} KiB"
