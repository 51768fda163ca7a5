"""Branches that only save work: what they skip would change nothing.

    for expert in range(self.num_experts):          if padding.any():
        slot, token = torch.where(mask[expert])         hidden[padding] = 0
        if token.numel() == 0:
            continue
        out.index_add_(0, token, ...)

Whether there is a token is data. But with none, the rest of the loop writes to no place. So the graph can hold the way that
does the work, and is right for both.
"""

from __future__ import annotations

import ast
import functools
import linecache
import re
from collections.abc import Sequence

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
#: Methods that write to the places that an index names, and give the whole back.
_WRITING = frozenset(("index_add", "index_copy", "index_put", "masked_scatter", "scatter", "scatter_add"))


@functools.lru_cache(maxsize=4096)
def answer_at(file: str, line: int) -> bool | None:
    """How an `if` on this line may be answered whatever the values are; None where it is a real question."""
    tree = tree_of(file)
    if tree is None:
        return None
    inside: list[ast.AST] = []
    found: tuple[ast.If, list[ast.AST]] | None = None

    def visit(node: ast.AST) -> None:
        nonlocal found
        if isinstance(node, ast.If) and node.test.lineno <= line <= (node.test.end_lineno or node.test.lineno):
            found = node, list(inside)
        inside.append(node)
        for child in ast.iter_child_nodes(node):
            visit(child)
        inside.pop()

    visit(tree)
    return _answer(*found) if found else None


@functools.lru_cache(maxsize=64)
def tree_of(file: str) -> ast.Module | None:
    """The syntax of a file; None where it has none (what was typed into a shell)."""
    try:
        return ast.parse("".join(linecache.getlines(file)))
    except SyntaxError:
        return None


def _answer(branch: ast.If, inside: Sequence[ast.AST]) -> bool | None:
    function = next((node for node in reversed(inside) if isinstance(node, FUNCTIONS)), None)
    if function is None or branch.orelse:
        return None
    asked, rest = _asked(branch.test), _skipped(branch, inside[-1])
    if asked is None:
        places = _counted_before(branch.test, rest, function)
        return False if places and is_neutral(rest, places, function) else None
    name, empty = asked
    places = {name} | _unpacked_with(function, name)
    if not empty:
        return True if is_neutral(branch.body, places, function) else None
    return False if rest and is_neutral(rest, places, function) else None


def _skipped(branch: ast.If, loop: ast.AST) -> list[ast.stmt]:
    """What `if ...: continue` skips; nothing of any other branch."""
    if not isinstance(loop, ast.For) or loop.orelse or len(branch.body) != 1 or branch not in loop.body:
        return []
    return loop.body[loop.body.index(branch) + 1 :] if isinstance(branch.body[0], ast.Continue) else []


def _counted_before(test: ast.expr, rest: Sequence[ast.stmt], function: ast.AST) -> set[str]:
    """The places of a number of which there are none, in a test of its count.

    `if counts[i] == 0: continue` before `rows, columns = torch.where(numbers == i)`, with `counts` made by
    `torch.bincount(numbers.flatten(), ...)` and by nothing else.
    """
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.ops[0], ast.Eq):
        return set()
    if ast.unparse(test.comparators[0]) != "0" or not isinstance(test.left, ast.Subscript):
        return set()
    index, counts = ast.unparse(test.left.slice), _made_of(ast.unparse(test.left.value), function)
    for statement in rest:
        if isinstance(statement, ast.Assign):
            called = re.fullmatch(r"torch\.where\((\w+) == (\w+)\)", ast.unparse(statement.value))
            if called and called[2] == index and len(_made_of(called[1], function)) < 2:
                of = rf"torch\.bincount\({called[1]}(\.(flatten|view|reshape)\((-1)?\))?, minlength=[^,]*\)(\.tolist\(\))?"
                counted = len(counts) == 1 and re.fullmatch(of, counts[0])
                return names_in(statement.targets[0]) if counted else set()
    return set()


def _made_of(name: str, function: ast.AST) -> list[str]:
    """What a name is assigned, each time."""
    assigned = [node for node in ast.walk(function) if isinstance(node, ast.Assign)]
    return [ast.unparse(node.value) for node in assigned if name in names_in(node.targets[0])]


def _asked(test: ast.expr) -> tuple[str, bool] | None:
    """The name of an index or mask, and whether the test asks if it names no place (else: if it names one)."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        asked = _asked(test.operand)
        return None if asked is None else (asked[0], not asked[1])
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        number = test.comparators[0]
        if not isinstance(number, ast.Constant) or number.value != 0 or (name := _counted(test.left)) is None:
            return None
        if isinstance(test.ops[0], ast.Eq):
            return name, True
        return (name, False) if isinstance(test.ops[0], ast.Gt | ast.NotEq) else None
    name = _counted(test)
    return None if name is None else (name, False)


def _counted(value: ast.expr) -> str | None:
    """The name in `name.numel()`, `name.shape[0]`, `len(name)`, `name.any()`, `name.sum()`, `torch.any(name)`."""
    if isinstance(value, ast.Subscript) and isinstance(value.value, ast.Attribute) and value.value.attr == "shape":
        first = isinstance(value.slice, ast.Constant) and value.slice.value == 0
        return name_of(value.value.value) if first else None
    if not isinstance(value, ast.Call) or value.keywords:
        return None
    called, arguments = value.func, value.args
    if isinstance(called, ast.Name) and called.id == "len" and len(arguments) == 1:
        return name_of(arguments[0])
    if not isinstance(called, ast.Attribute):
        return None
    of_torch = name_of(called.value) == "torch" and len(arguments) == 1
    name = name_of(arguments[0]) if of_torch else name_of(called.value) if not arguments else None
    if called.attr == "sum" and "mask" not in (name or ""):
        return None  # the sum of indices says nothing about their number
    return name if called.attr in ("any", "sum", "numel") else None


def name_of(value: ast.expr) -> str | None:
    """The name that an expression is, if it is nothing else."""
    return value.id if isinstance(value, ast.Name) else None


def _unpacked_with(function: ast.AST, name: str) -> set[str]:
    """The names of `rows, columns = torch.where(...)` that this one is among."""
    for node in ast.walk(function):
        if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Tuple):
            continue
        called = node.value.func if isinstance(node.value, ast.Call) else None
        names = names_in(node.targets[0])
        if name in names and isinstance(called, ast.Attribute) and called.attr in ("where", "nonzero"):
            return names
    return set()


def is_neutral(block: Sequence[ast.stmt], places: set[str], function: ast.AST) -> bool:
    """Whether statements only write to these places, and leave no name behind that something else reads."""
    own: set[str] = set()
    for statement in block:
        if _skips(statement):
            continue
        if isinstance(statement, ast.Assign) and _writes_whole(statement, places):
            continue  # `out = out.index_add(0, places, ...)`
        if isinstance(statement, ast.Assign | ast.AugAssign):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            for target in targets:
                if isinstance(target, ast.Subscript):
                    if not _indexes(target.slice, places):
                        return False
                elif isinstance(statement, ast.AugAssign) or not isinstance(target, ast.Name | ast.Tuple):
                    return False
                else:
                    own |= names_in(target)
        elif not isinstance(statement, ast.Expr) or not _writes_in_place(statement.value, places):
            return False
    outside = [node for node in ast.walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)]
    within = {id(node) for statement in block for node in ast.walk(statement)}
    return not own & {node.id for node in outside if id(node) not in within}


def _skips(statement: ast.stmt) -> bool:
    """`if ...: continue`, which changes nothing more than what it skips."""
    if not isinstance(statement, ast.If) or statement.orelse or len(statement.body) != 1:
        return False
    return isinstance(statement.body[0], ast.Continue)


def _writes_whole(statement: ast.Assign, places: set[str]) -> bool:
    value, target = statement.value, name_of(statement.targets[0])
    if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Attribute) or target is None:
        return False
    return value.func.attr in _WRITING and name_of(value.func.value) == target and _among(value.args, places)


def _writes_in_place(value: ast.expr, places: set[str]) -> bool:
    if isinstance(value, ast.Constant):
        return True
    if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Attribute):
        return False
    method = value.func.attr
    return method.endswith("_") and method[:-1] in _WRITING and _among(value.args, places)


def _among(arguments: Sequence[ast.expr], places: set[str]) -> bool:
    return any(_indexes(argument, places) for argument in arguments[:2])


def _indexes(index: ast.expr, places: set[str]) -> bool:
    """Whether an index is one of these names, or has one among others; `~mask` names the other places."""
    parts = index.elts if isinstance(index, ast.Tuple | ast.List) else [index]
    return any(name_of(part) in places for part in parts)


def names_in(value: ast.AST) -> set[str]:
    """All names inside."""
    return {node.id for node in ast.walk(value) if isinstance(node, ast.Name)}
