"""What every benchmark says beside its figures: the machine, the code, a table of medians with their spread, and a JSON file of it all."""

import json
import os
import platform
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

RESULTS = Path(__file__).resolve().parent.parent / "results"


@dataclass(frozen=True, slots=True)
class Spread:
    """Repeated measurements of one thing."""

    values: tuple[float, ...]

    @property
    def median(self) -> float:
        """Of all repetitions."""
        return median(self.values)

    def __str__(self) -> str:
        """The median, and the smallest and largest value."""
        return f"{self.median:,.3g} ({min(self.values):,.3g}-{max(self.values):,.3g})"


def machine_facts(*distributions: str) -> dict[str, Any]:
    """Where and of what the figures were made: processor, cores, load, Python, versions of these distributions, commit."""
    root = Path(__file__).resolve().parent
    commit, changed = (
        subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=False).stdout.strip()
        for arguments in (("rev-parse", "HEAD"), ("status", "--porcelain", "--untracked-files=no"))
    )
    return {
        "cpu": _processor(),
        "cores": os.cpu_count(),
        "load_1m_before": round(os.getloadavg()[0], 1),
        "system": platform.platform(),
        "python": sys.version.split()[0],
        "versions": {name: version(name) for name in sorted(distributions)},
        "commit": f"{commit}{' with changes' if changed else ''}",
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def markdown_rows(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(map(str, line))} |\n" for line in lines)


def save(name: str, *, method: str, machine: Mapping[str, Any], measured: Any, folder: Path = RESULTS) -> Path:
    """Write `<name>.json` and return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.json"
    whole = {"benchmark": name, "method": " ".join(method.split()), "machine": machine, "measured": measured}
    path.write_text(json.dumps(whole, indent=1, ensure_ascii=False) + "\n", "utf-8")
    return path


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())
