import pytest

ir = pytest.importorskip("onnx_ir")

from transformers_exporters.artifact.spec import ComponentSpec, TensorSpec  # noqa: E402
from transformers_exporters.backends.onnx.in_place import prove_in_place  # noqa: E402

SHAPE = (4, 8)


def proved(body: str, outputs: str = "float[4,8] new", new_shape: tuple = SHAPE) -> bool:
    """Whether `old` -> `new` is proved for a graph in ONNX's text syntax."""
    text = f"""
    <ir_version: 10, opset_import: ["" : 20]>
    graph (float[4,8] old, float[4,8] x, float[2,8] rows, int64[2,1] at, bool c) => ({outputs}) {{ {body} }}
    """
    model = ir.from_onnx_text(text)
    spec = ComponentSpec(
        "decode",
        tuple(TensorSpec(value.name, value.name, "float32", SHAPE) for value in model.graph.inputs),
        (TensorSpec("new", "new", "float32", new_shape),),
        state=(("old", "new"),),
    )
    return prove_in_place(model, spec) == ("old",)


@pytest.mark.parametrize(
    "body",
    [
        "new = ScatterND (old, at, rows)",
        "new = Add (old, x)",
        "new = Sub (x, old)",
        "new = Identity (old)",
        # Read before the write, which depends on it.
        "t = Mul (old, x)  new = Add (t, x)",
        "t = Transpose (old)  u = Transpose (t)  new = ScatterND (u, at, rows)",
        # Only the shape is read beside it.
        "new = ScatterND (old, at, rows)  s = Shape (old)  y = Reshape (x, s)",
    ],
)
def test_safe_graphs_are_proved(body: str) -> None:
    assert proved(body)


@pytest.mark.parametrize(
    "body",
    [
        # Read by a node that may run after the write.
        "new = ScatterND (old, at, rows)  y = Mul (old, x)",
        "new = Add (old, x)  y = ReduceSum (old)",
        # The same, through a view of the old value.
        "flat = Flatten (old)  new = ScatterND (flat, at, rows)  y = Mul (flat, x)",
        # The writer reads in another order than it writes.
        "new = Transpose <perm = [0, 1]> (old)",
        "new = ScatterND (x, at, old)",
        "new = ScatterND (old, at, old)",
        "new = MatMul (old, x)",
    ],
)
def test_unsafe_graphs_are_not(body: str) -> None:
    outputs = "float[4,8] new, float[4,8] y" if "y =" in body else "float[4,8] new"
    assert not proved(body, outputs)


def test_a_read_from_inside_a_subgraph_proves_nothing() -> None:
    branches = "then_branch = a () => (float[4,8] p) { p = Mul (old, x) }, else_branch = b () => (float[4,8] q) { q = Identity (x) }"
    body = f"y = If (c) <{branches}>  new = ScatterND (old, at, rows)"
    assert not proved(body, "float[4,8] new, float[4,8] y")


def test_state_that_changes_its_shape_is_never_proved() -> None:
    assert not proved("new = Concat <axis = 0> (old, rows)", "float[6,8] new", (6, 8))
