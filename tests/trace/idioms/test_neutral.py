"""`trace.idioms.neutral`: which branches may be answered without their question."""

from __future__ import annotations

from pathlib import Path

import pytest

from transformers_exporters.trace.idioms.neutral import answer_at

LOOP = """
def forward(self, x, out, mask):
    before = 0
    for i in range(4):
        slot, token = torch.where(mask[i])
        if {test}:
            continue
        {body}
    return out, before
"""
BRANCH = """
def forward(self, x, out, mask, index):
    if {test}:
        {body}
    return out
"""


def answer(tmp_path: Path, source: str, **parts: str) -> bool | None:
    file = tmp_path / f"modeling_{abs(hash((source, *parts.values())))}.py"
    file.write_text(source.format(**parts))
    line = next(n for n, text in enumerate(file.read_text().splitlines(), 1) if text.strip().startswith("if "))
    return answer_at(str(file), line)


@pytest.mark.parametrize("test", ["token.numel() == 0", "token.shape[0] == 0", "len(slot) == 0", "not token.numel()"])
@pytest.mark.parametrize(
    "body",
    [
        "out.index_add_(0, token, self.experts[i](x[token]))",
        "part = self.experts[i](x[token]); out[token] += part",
        "out[token, slot] = x[token]",
        "out = out.index_add(0, token, x[token])",
    ],
)
def test_a_loop_that_only_writes_to_the_places_is_run_through(tmp_path: Path, test: str, body: str) -> None:
    assert answer(tmp_path, LOOP, test=test, body=body) is False


@pytest.mark.parametrize(
    "body",
    [
        "out[i] = x[token].mean(0)",  # writes, although there is no place
        "before += 1",
        "before = i; out[token] = 1",  # read behind the loop
        "self.seen.append(token)",
        "out[~token] = 1",
    ],
)
def test_a_loop_that_does_something_else_is_a_question(tmp_path: Path, body: str) -> None:
    assert answer(tmp_path, LOOP, test="token.numel() == 0", body=body) is None


COUNTS = """
def forward(self, x, out, chosen, enabled):
    counts = {counts}
    for i in range(4):
        if counts[i] == 0:
            continue
        token, slot = torch.where({places})
        {body}
    return out
"""
COUNTED = {
    "counts": "torch.bincount(chosen.flatten(), minlength=4).tolist()",
    "places": "chosen == i",
    "body": "out[token] += self.experts[i](x[token]) * x[token, slot, None]",
}


def test_a_count_of_the_places_is_no_question(tmp_path: Path) -> None:
    assert answer(tmp_path, COUNTS, **COUNTED) is False


@pytest.mark.parametrize(
    "other",
    [
        {"counts": "enabled.tolist()"},
        {"counts": "torch.bincount(enabled.flatten(), minlength=4).tolist()"},
        {"counts": "torch.bincount(chosen.flatten(), weights=enabled, minlength=4)"},
        {"counts": "torch.bincount(chosen.flatten(), minlength=4, weights=enabled)"},
        {"places": "chosen == i + 1"},
        {"places": "enabled == i"},
        {"body": "out[i] += 1"},
        {"body": "counts[i + 1] = 0; out[token] = 1"},
        {"body": "chosen = chosen + 1; out[token] = 1"},
    ],
)
def test_a_count_of_something_else_is_a_question(tmp_path: Path, other: dict[str, str]) -> None:
    assert answer(tmp_path, COUNTS, **COUNTED | other) is None


def test_another_way_out_is_a_question(tmp_path: Path) -> None:
    source = LOOP.replace("continue", "break")
    assert answer(tmp_path, source, test="token.numel() == 0", body="out[token] = 1") is None


@pytest.mark.parametrize(
    ("test", "body", "wanted"),
    [
        ("mask.any()", "out[mask] = 0", True),
        ("torch.any(mask)", "out[:, mask] = 0", True),
        ("mask.sum() > 0", "out[mask] = 0", True),
        ("index.numel() > 0", "out.index_copy_(0, index, x)", True),
        ("mask.any()", "out[~mask] = 0", None),
        ("mask.any()", "out = out * 2", None),
        ("mask.any()", "raise ValueError(mask)", None),
        ("index.sum() > 0", "out[index] = 0", None),
        ("not mask.any()", "out[mask] = 0", None),
        ("mask.all()", "out[mask] = 0", None),
        ("index.shape[1] > 0", "out[index] = 0", None),
    ],
)
def test_a_masked_write_needs_no_question(tmp_path: Path, test: str, body: str, wanted: bool | None) -> None:
    assert answer(tmp_path, BRANCH, test=test, body=body) is wanted
