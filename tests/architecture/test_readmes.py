"""The English and the Turkish README hold the same commands and code."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def _blocks(name: str) -> list[tuple[str, str]]:
    return FENCE.findall((ROOT / name).read_text(encoding="utf-8"))


def test_code_blocks_are_equal() -> None:
    english, turkish = _blocks("README.md"), _blocks("README.tr.md")
    assert english == turkish
    assert len(english) >= 3


def test_the_two_commands_are_there() -> None:
    text = "\n".join(code for _, code in _blocks("README.md"))
    assert "make demo" in text
    assert "make test" in text


def test_headings_match_in_number() -> None:
    count = [
        len(re.findall(r"^#+ ", (ROOT / n).read_text(encoding="utf-8"), re.MULTILINE))
        for n in ("README.md", "README.tr.md")
    ]
    assert count[0] == count[1]


def test_links_lead_somewhere() -> None:
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        prose = re.sub(r"`[^`]*`", "", FENCE.sub("", page.read_text(encoding="utf-8")))
        for target in re.findall(r"\]\(([^)#]+)", prose):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.relative_to(ROOT)} links to {target}"
