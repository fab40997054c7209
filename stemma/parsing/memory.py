"""The most memory that this process held since it was last asked to forget (Linux)."""

from contextlib import suppress
from pathlib import Path

_PROCESS = Path("/proc/self")


def forget_peak() -> None:
    """Begin to measure anew; without effect where the kernel does not allow it: then the peak is the process's own."""
    with suppress(OSError):
        (_PROCESS / "clear_refs").write_text("5", "ascii")


def peak_bytes() -> int | None:
    """The largest resident size since `forget_peak`; None where the system does not say."""
    with suppress(OSError):
        for line in (_PROCESS / "status").read_text("ascii", "replace").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1_024
    return None
