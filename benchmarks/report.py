"""Write docs/benchmarks.md from the JSON files of the other scripts.

usage: python benchmarks/report.py FILE... > docs/benchmarks.md
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

_LEGEND = (
    "Written by `make bench`; each table names the script that measured it. `export.py` prints ours ÷ "
    "`transformers.exporters`: below 1 is less time, memory or space. `decode.py` prints steps a second, ours ÷ the other: "
    "above 1 is faster."
)


def page(reports: list[dict[str, Any]]) -> str:
    """The page: one table of ratios for each report, with its date, machine and versions."""
    lines = ["# Benchmarks", "", _LEGEND, ""]
    for report in reports:
        machine, versions, threads = report["machine"], report["versions"], report["threads"]
        lines += [
            f"## `benchmarks/{report['script']}`" + (f", {threads} thread{'s' * (threads > 1)}" if threads else ""),
            "",
            f"{report['date']}, {machine['cores']} cores, {machine['system']}, Python {machine['python']}; "
            + ", ".join(f"{package} {version}" for package, version in versions.items()),
            "",
            "| what | ratio |",
            "|---|---:|",
            *(f"| {what} | {ratio:.2f} |" for what, ratio in report["ratios"].items()),
            "",
        ]
    return "\n".join(lines)


if __name__ == "__main__":
    print(page([json.loads(Path(file).read_text()) for file in sys.argv[1:]]), end="")
