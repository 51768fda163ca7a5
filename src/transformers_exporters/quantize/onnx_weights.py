"""Weight-only quantization of an ONNX graph: MatMul and Gather over a weight become ONNX Runtime's block-wise ops.

`MatMulNBits` and `GatherBlockQuantized` of the domain `com.microsoft` are described in ONNX Runtime's ContribOperators.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import onnx_ir as ir
import torch
from onnx_ir.passes.common import RemoveUnusedNodesPass

from .blockwise import Blocks
from .sensitivity import Product, most_sensitive

_DOMAIN = "com.microsoft"
_FLOATS = (ir.DataType.FLOAT, ir.DataType.FLOAT16)
#: A weight with fewer values stays as it is: its share of the file is small, that of the error need not be.
SMALLEST = 2048


@dataclass(frozen=True)
class Linear:
    """A product with a constant matrix.

    Attributes:
        weight: Name of the initializer.
        rows_last: Whether it is stored as [in features, out features].
        source: What is multiplied.
        bias: Added afterwards, or None.
    """

    weight: str
    rows_last: bool
    source: ir.Value
    bias: ir.Value | None


def quantize_weights(
    model: ir.Model, weights: Mapping[str, torch.Tensor], quantize: Callable[..., Blocks], options: Options
) -> dict[str, torch.Tensor]:
    """Replace the products and look-ups of a model by ones over integers, in place.

    Args:
        model: A model whose initializers' values may be elsewhere.
        weights: The values of its initializers by name.
        quantize: `blockwise.quantize_rows`, or one that remembers what it has quantized.
        options: Bits and kernels.

    Returns:
        The tensors of the new initializers by name.
    """
    made: dict[str, torch.Tensor] = {}
    uses = list(_uses(model, weights, options))
    precise = _sensitive(uses, quantize, options) | {use.name for use in uses if use.linear is None}
    for use in uses:
        bits = options.bits if use.name not in precise else options.precise_bits
        # 256 steps need no zero point.
        symmetric = options.symmetric or bits == 8
        blocks = quantize(use.weight, bits=bits, block_size=options.block_size, symmetric=symmetric)
        if use.linear is not None:
            new = _matmul(model, use.node, use.linear, blocks, options, made)
        else:
            new = _gather(model, use.node, use.name, blocks, made)
        _replace(use.node, new)
    RemoveUnusedNodesPass()(model)
    model.opset_imports.setdefault(_DOMAIN, 1)
    return made


@dataclass(frozen=True)
class _Use:
    """A node over a weight [rows, columns]: a product, or (`linear` is None) a look-up of rows."""

    node: ir.Node
    linear: Linear | None
    name: str
    weight: torch.Tensor


def _uses(model: ir.Model, weights: Mapping[str, torch.Tensor], options: Options) -> Iterator[_Use]:
    for node in ir.traversal.RecursiveGraphIterator(model.graph):
        linear = _linear(node)
        name = linear.weight if linear is not None else _table(node)
        weight = weights.get(name) if name is not None else None
        if name is None or weight is None or weight.numel() < SMALLEST:
            continue
        if linear is None and weight.shape[1] % options.block_size:
            continue  # the kernel's rows have no room for a last block that is not full
        yield _Use(node, linear, name, weight.t() if linear is not None and linear.rows_last else weight)


def _sensitive(uses: Sequence[_Use], quantize: Callable[..., Blocks], options: Options) -> set[str]:
    """The weights of products that keep more bits: `1 - ratio` of all their values."""
    if options.bits == options.precise_bits:
        return set()
    tables = {use.name for use in uses if use.linear is None}
    products: dict[str, Product] = {}
    for use in uses:
        if use.name not in tables and use.name not in products:
            blocks = quantize(use.weight, bits=options.bits, block_size=options.block_size, symmetric=options.symmetric)
            products[use.name] = Product(use.weight.shape[0], use.weight.shape[1], blocks.error)
    return most_sensitive(products, 1 - options.ratio)


@dataclass(frozen=True)
class Options:
    """What the new nodes are told.

    Attributes:
        bits: Of a product's weight.
        precise_bits: Of a weight that rows are looked up in (embeddings, and an output projection tied to one), and of
            the products that suffer most.
        ratio: The part of the products' values that gets `bits`.
        block_size: Columns that share a scale.
        symmetric: No zero points with 4 bits either.
        accuracy_level: What a product is computed in: 0 the input's dtype, 4 int8 (`MatMulNBits`).
    """

    bits: int
    precise_bits: int
    ratio: float
    block_size: int
    symmetric: bool
    accuracy_level: int


def _linear(node: ir.Node) -> Linear | None:
    if node.domain or node.op_type not in ("MatMul", "Gemm") or len(node.inputs) < 2:
        return None
    source, matrix = node.inputs[0], node.inputs[1]
    if source is None or matrix is None or source.is_initializer():
        return None
    flipped = False
    producer = matrix.producer()
    if producer is not None and producer.op_type == "Transpose" and not producer.domain:
        permutation = producer.attributes.get("perm")
        if permutation is not None and list(permutation.as_ints()) != [1, 0]:
            return None
        matrix, flipped = producer.inputs[0], True
    if matrix is None or not _is_matrix(matrix):
        return None
    if node.op_type == "MatMul":
        rank = None if source.shape is None else len(source.shape)
        return None if rank == 1 else Linear(str(matrix.name), not flipped, source, None)
    numbers = {
        name: node.attributes[name].value for name in ("alpha", "beta", "transA", "transB") if name in node.attributes
    }
    if numbers.get("alpha", 1.0) != 1 or numbers.get("beta", 1.0) != 1 or numbers.get("transA", 0):
        return None
    bias = node.inputs[2] if len(node.inputs) > 2 else None
    if bias is not None and (bias.shape is None or len(bias.shape) != 1 or not bias.is_initializer()):
        return None
    return Linear(str(matrix.name), flipped == bool(numbers.get("transB", 0)), source, bias)


def _table(node: ir.Node) -> str | None:
    """The matrix whose rows a Gather looks up."""
    if node.domain or node.op_type != "Gather" or node.inputs[0] is None:
        return None
    axis = node.attributes.get("axis")
    matrix = node.inputs[0]
    return str(matrix.name) if _is_matrix(matrix) and (axis is None or axis.as_int() == 0) else None


def _is_matrix(value: ir.Value) -> bool:
    return value.is_initializer() and value.shape is not None and len(value.shape) == 2 and value.dtype in _FLOATS


def _matmul(
    model: ir.Model, node: ir.Node, linear: Linear, blocks: Blocks, options: Options, made: dict[str, torch.Tensor]
) -> ir.Node:
    name = linear.weight
    zeros = None
    if blocks.zero_points is not None:
        zeros = add_initializer(model, f"{name}.zero_points", blocks.zero_points, made)
    return ir.Node(
        _DOMAIN,
        "MatMulNBits",
        [
            linear.source,
            add_initializer(model, f"{name}.blocks", blocks.values, made),
            _scales(model, name, blocks, made),
            zeros,
            None,
            linear.bias,
        ],
        [
            ir.AttrInt64("K", blocks.columns),
            ir.AttrInt64("N", blocks.values.shape[0]),
            ir.AttrInt64("bits", blocks.bits),
            ir.AttrInt64("block_size", blocks.block_size),
            ir.AttrInt64("accuracy_level", options.accuracy_level),
        ],
        name=node.name,
    )


def _gather(model: ir.Model, node: ir.Node, name: str, blocks: Blocks, made: dict[str, torch.Tensor]) -> ir.Node:
    rows = blocks.values.flatten(1)
    inputs = [
        add_initializer(model, f"{name}.rows", rows, made),  # the same bytes as `.blocks`, stored once
        node.inputs[1],
        _scales(model, name, blocks, made),
    ]
    if blocks.zero_points is not None:
        inputs.append(add_initializer(model, f"{name}.zero_points", blocks.zero_points, made))
    return ir.Node(
        _DOMAIN,
        "GatherBlockQuantized",
        inputs,
        [
            ir.AttrInt64("bits", blocks.bits),
            ir.AttrInt64("block_size", blocks.block_size),
            ir.AttrInt64("gather_axis", 0),
            ir.AttrInt64("quantize_axis", 1),
        ],
        name=node.name,
    )


def _scales(model: ir.Model, name: str, blocks: Blocks, made: dict[str, torch.Tensor]) -> ir.Value:
    """The scales in the dtype of the computation. The engine does this cast once, when it loads the graph."""
    stored = add_initializer(model, f"{name}.scales", blocks.scales, made)
    if blocks.dtype == torch.float16:
        return stored
    known = [use.node for use in stored.uses() if use.node.op_type == "Cast"]
    if known:
        return known[0].outputs[0]
    cast = ir.Node("", "Cast", [stored], [ir.AttrInt64("to", ir.DataType.FLOAT)], name=f"{name}.scales.cast")
    cast.outputs[0].name = f"{name}.scales.float32"
    model.graph.insert_before(model.graph[0], cast)
    return cast.outputs[0]


def add_initializer(model: ir.Model, name: str, tensor: torch.Tensor, made: dict[str, torch.Tensor]) -> ir.Value:
    """The initializer of that name, made of a tensor if there is none yet; new ones are noted in `made`."""
    if name not in model.graph.initializers:
        constant = ir.Tensor(tensor.numpy(), name=name)
        value = ir.Value(name=name, shape=constant.shape, type=ir.TensorType(constant.dtype), const_value=constant)
        model.graph.register_initializer(value)
        made[name] = tensor
    return model.graph.initializers[name]


def _replace(node: ir.Node, new: ir.Node) -> None:
    old, result = node.outputs[0], new.outputs[0]
    result.name, result.shape, result.type = old.name, old.shape, old.type
    assert node.graph is not None
    ir.convenience.replace_nodes_and_values(node.graph, node, [node], [new], [old], [result])
