"""Write what decode.cpp has to know about an artifact's decode graph as plain lines; the wheel has no JSON reader for C++.

    python describe.py ARTIFACT > decode.txt

All of it stands in the artifact's `manifest.json`. One record a line, words separated by spaces; a size is a number or an
axis name (`batch`, `sequence`, `cache`):

    program FILE          the program, and after it the file of its weights where they are apart
    cache LENGTH          positions that the cache holds
    input NAME SIZE...    in the order of the method's inputs
    state NAME            an input that carries state from step to step
    updated NAME          a result: the new value of that input; in the order of the method's results
    output NAME SIZE...   a result: an output of the model, behind them
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path


def describe(directory: Path) -> Iterator[str]:
    """The lines for the component `decode`."""
    manifest = json.loads((directory / "manifest.json").read_text(encoding="utf-8"))
    component = manifest["components"]["decode"]
    yield " ".join(["program", *component["files"]])
    yield f"cache {manifest['generation']['max_cache_len']}"
    for tensor in component["inputs"]:
        yield " ".join(["input", tensor["name"], *map(str, tensor["shape"])])
    for name, _ in component["state"]:
        yield f"state {name}"
    results = component["options"]["results"]
    # A program that writes into the caller's memory returns no updated input at all.
    for name in [] if results["in_place"] else results["written"]:
        yield f"updated {name}"
    for place in results["returned"]:
        tensor = component["outputs"][place]
        yield " ".join(["output", tensor["name"], *map(str, tensor["shape"])])


if __name__ == "__main__":
    print("\n".join(describe(Path(sys.argv[1]))))
