"""Every Python block of the guides and the README runs.

The blocks of a page run in order in one namespace, in a fresh process and an empty directory, offline. A block under
`<!-- no-run: reason -->` is only compiled.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "docs" / "extending.md", *sorted((ROOT / "docs" / "guides").glob("*.md"))]
BLOCK = re.compile(r"(?P<mark><!-- no-run: [^>]+ -->\s*)?^```python\n(?P<code>.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(page: Path) -> list[tuple[bool, str]]:
    """(whether it runs, code) for each Python block, padded so that a traceback names the page's own line."""
    text = page.read_text(encoding="utf-8")
    found = []
    for match in BLOCK.finditer(text):
        line = text.count("\n", 0, match.start("code"))
        found.append((match["mark"] is None, "\n" * line + match["code"]))
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_blocks_run(page: Path, tmp_path: Path) -> None:
    script = ["import torch; torch.set_num_threads(1); torch.manual_seed(0)"]
    for runs, code in blocks(page):
        compile(code, str(page), "exec")
        if runs:
            script.append(f"exec(compile({code!r}, {str(page)!r}, 'exec'), globals())")
    if len(script) == 1:
        pytest.skip("no block of this page runs")
    environment = os.environ | {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
    run = subprocess.run(
        [sys.executable, "-c", "\n".join(script)], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr[-4000:]
