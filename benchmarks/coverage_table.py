"""The coverage table: results of the sweep as Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

Cases = Mapping[tuple[str, ...], Mapping[str, Any]]


def render(cases: Cases, first: Cases, formats: tuple[str, ...], modes: tuple[str, ...]) -> str:
    """The page: totals, a row an architecture, then the reason of every case that does not pass.

    Args:
        cases: The last result of every case.
        first: The first one.
        formats: The backends, in the order of the columns.
        modes: The modes, in the order of the sections.
    """
    if not cases:
        raise SystemExit("There are no results: run the sweep first.")
    last = max(cases.values(), key=lambda case: case["date"])
    about = ", ".join(f"{name} {version}" for name, version in last["versions"].items())
    commits = Counter(str(case.get("commit")) for case in cases.values())
    counted = ", ".join(f"{commit} ({number})" for commit, number in commits.most_common())
    lines = [
        "# Coverage",
        "",
        f"Written by `benchmarks/coverage.py --render` from its results; last case {last['date']}; cases by commit: "
        f"{counted}; {about}.",
        "",
        "A case exports a tiny model with random weights and `dynamic=True`, saves it, opens it again and compares every",
        "output with eager's: at the given sizes and at batches, lengths and image sizes that were never traced, as far as",
        "the model takes them. `generation` exports the graphs of `generate` and compares each of them and the tokens. A",
        "cell is the seconds that the export computed (by the clock before commit 6172d9c), **fail** where it fails (see below the",
        "table), `–` where there is nothing to export, and empty where it was not run.",
        "",
        "A failed case is run again after a mend, a passed one is not. So the rate is no estimate for architectures that",
        "are not in the table: `at first` counts the cases that passed when they were run for the first time.",
        "",
        *_totals(cases, first, formats, modes),
        "",
    ]
    for mode in modes:
        if any(key[2] == mode for key in cases):
            lines += [*_rows(cases, formats, mode), ""]
    return "\n".join([*lines, *_reasons(cases)]) + "\n"


def _totals(cases: Cases, first: Cases, formats: tuple[str, ...], modes: tuple[str, ...]) -> list[str]:
    lines = [
        "| backend | mode | passed | at first | of | rate | median seconds | slowest |",
        "|---|---|---:|---:|---:|---:|---:|---:|",
    ]
    for mode in modes:
        for format in formats:
            run = [case for key, case in cases.items() if key[1:] == (format, mode) and case["status"] != "skip"]
            if run:
                passed = sum(case["status"] == "pass" for case in run)
                early = sum(case["status"] == "pass" for key, case in first.items() if key[1:] == (format, mode))
                seconds = sorted(case["seconds"] for case in run if case["seconds"] is not None) or [0.0]
                lines.append(
                    f"| {format} | {mode} | {passed} | {early} | {len(run)} | {100 * passed / len(run):.1f} % | "
                    f"{seconds[len(seconds) // 2]:.1f} | {seconds[-1]:.0f} |"
                )
    return lines


def _rows(cases: Cases, formats: tuple[str, ...], mode: str) -> list[str]:
    lines = [f"## {mode.capitalize()}", "", f"| model | {' | '.join(formats)} |", "|---|" + "---:|" * len(formats)]
    for name in sorted({key[0] for key in cases if key[2] == mode}, key=str.lower):
        cells = [_cell(cases.get((name, format, mode))) for format in formats]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines


def _cell(case: Mapping[str, Any] | None) -> str:
    if case is None:
        return ""
    if case["status"] == "pass":
        return f"{case['seconds']:.1f}"
    return "**fail**" if case["status"] == "fail" else "–"


def _reasons(cases: Cases) -> list[str]:
    """Why each case does not pass; backends with the same reason share a row."""
    same: dict[tuple[str, str, str], list[str]] = {}
    for (name, format, mode), case in sorted(cases.items(), key=lambda item: item[0][0].lower()):
        if case["status"] != "pass":
            reason = str(case["reason"]).replace("|", "/").replace("\n", " ")
            same.setdefault((name, mode, reason), []).append(format)
    lines = ["## What does not pass, and why", "", "| model | mode | backends | reason |", "|---|---|---|---|"]
    lines += [f"| {name} | {mode} | {', '.join(found)} | {reason} |" for (name, mode, reason), found in same.items()]
    return lines
