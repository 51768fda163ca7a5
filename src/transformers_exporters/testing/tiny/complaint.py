"""What the model's own code says when it refuses a config or inputs: the names and the sizes that it complains about."""

from __future__ import annotations

import linecache
import re
import traceback
import types
from collections.abc import Iterator
from dataclasses import dataclass

#: Messages that name a size that was found and the size that should be there, as (pattern, found, wanted).
_FOUND_AND_WANTED = (
    (r"shapes cannot be multiplied \(\d+x(\d+) and (\d+)x\d+\)", 1, 2),
    (r"to have (\d+) channels, but got (\d+) channels", 2, 1),
    (r"normalized_shape=\[(\d+)\].* size\s?\[[\d, ]*?(\d+)\]", 2, 1),
    (r"Expected size (\d+) but got size (\d+)", 2, 1),
    (r"must be equal to input_size\. Expected (\d+), got (\d+)", 2, 1),
    (r"must be (\d+), (?:but )?got (\d+)", 2, 1),
)
#: Frames of the model's code whose lines are read, innermost first.
_MOST_FRAMES = 6
_CHAIN = re.compile(r"(?<![\w.])[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
_IDENTIFIER = re.compile(r"[A-Za-z_]\w+")


@dataclass(frozen=True)
class Complaint:
    """An exception of the model's code, read.

    Attributes:
        message: Its text, with that of its cause.
        nothing: Names in the lines that raised it whose value is None there (`x`, and `b` of `a.b`), innermost first.
        names: Identifiers in the message and then in those lines, each once.
        axes: The names that a shape was unpacked to, where that is what failed (`batch, frames, width = x.shape`).
        strings: Texts in quotes in those lines, which is what the code compares with.
        pairs: Sizes (found, wanted); both ways round where the message does not say which is which.
    """

    message: str
    nothing: tuple[str, ...]
    names: tuple[str, ...]
    axes: tuple[str, ...]
    strings: tuple[str, ...]
    pairs: tuple[tuple[int, int], ...]

    @property
    def of_nothing(self) -> bool:
        """Whether something is missing: None where the code wants a value, or a value that the code asks for."""
        return "None" in self.message or not self.pairs

    def unpacked(self) -> tuple[int | None, int | None]:
        """How many axes the code wants and how many it got, where a shape did not unpack; None for what is not said."""
        found = re.search(r"values to unpack \(expected (\d+)(?:, got (\d+))?", self.message)
        return (int(found[1]), int(found[2]) if found[2] else None) if found else (None, None)


def complaint_of(problem: BaseException) -> Complaint:
    """Read an exception while it still has its traceback."""
    chain = [problem] if problem.__cause__ is None else [problem, problem.__cause__]
    message = " ".join(str(one) for one in chain)
    raised = [one for each in chain for one in _raised(each)]
    texts = [text for text, _ in raised]
    unpacked = re.match(r"\s*\(?(\w+(?:,\s*\w+)+)\)?\s*=", texts[0]) if texts and "to unpack" in message else None
    return Complaint(
        message,
        nothing=tuple(dict.fromkeys(name for text, frame in raised for name in _nothing(text, frame))),
        names=tuple(dict.fromkeys(name for text in (message, *texts) for name in _IDENTIFIER.findall(text))),
        axes=tuple(re.findall(r"\w+", unpacked[1])) if unpacked else (),
        strings=tuple(found for text in texts for found in re.findall(r"\"(\w+)\"", text)),
        pairs=tuple(dict.fromkeys(_pairs(message))),
    )


def _raised(problem: BaseException) -> Iterator[tuple[str, types.FrameType]]:
    """The source that raised, with its frame, in the code of transformers, innermost first; with a `raise` its condition."""
    walked = zip(traceback.walk_tb(problem.__traceback__), traceback.extract_tb(problem.__traceback__), strict=True)
    places = [
        (frame, line, summary.end_lineno or line)
        for (frame, line), summary in walked
        if str(frame.f_globals.get("__name__", "")).startswith("transformers.")
    ]
    for frame, line, end in reversed(places[-_MOST_FRAMES:]):
        file = frame.f_code.co_filename
        start = line - 3 if linecache.getline(file, line).lstrip().startswith("raise") else line
        yield "".join(linecache.getline(file, at) for at in range(start, end + 1)), frame


def _nothing(text: str, frame: types.FrameType) -> Iterator[str]:
    """Names in the line that are None there, and the config fields that the same file sets things of that name from."""
    for chain in _CHAIN.findall(text):
        first, *rest = chain.split(".")
        value = frame.f_locals.get(first, frame)
        for name in rest:
            try:
                value = getattr(value, name, frame)
            except Exception:  # noqa: BLE001 -- a config may refuse a field that differs from layer to layer
                value = frame
        if value is None:
            name = (first, *rest)[-1]
            yield name
            source = "".join(linecache.getlines(frame.f_code.co_filename))
            yield from re.findall(rf"\b{name}\s*=\s*[^\n#]*?\bconfig\.(\w+)", source)


def _pairs(message: str) -> Iterator[tuple[int, int]]:
    for pattern, found, wanted in _FOUND_AND_WANTED:
        for match in re.finditer(pattern, message, re.DOTALL):
            yield int(match[found]), int(match[wanted])
            return
    numbers = list(dict.fromkeys(int(one) for one in re.findall(r"(?<![\w.])\d+(?![\w.]*\d)", _without_axis(message))))
    if len(numbers) == 2:
        yield numbers[0], numbers[1]
        yield numbers[1], numbers[0]


def _without_axis(message: str) -> str:
    return re.sub(r"(at|in) (non-singleton )?dim(ension)? \d+|unpack \(.*\)|\(position \d+\)|pos \d+", "", message)
