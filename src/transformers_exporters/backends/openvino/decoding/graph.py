"""A whole graph, as the frontend sees it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch
from openvino import OVAny, PartialShape
from openvino.frontend.pytorch.py_pytorch_frontend import _FrontEndPytorchDecoder as Decoder

from .base import BaseDecoder
from .conversion import Conversion
from .literals import element_type
from .node import NodeDecoder, attribute


class GraphDecoder(BaseDecoder):
    """A whole graph: inputs, then every node in order, then the outputs.

    Args:
        graph: The graph, of a program or of a branch of a control-flow op.
        module: Where `get_attr` nodes find their subgraphs.
        weights: Placeholder or attribute name -> fully qualified name of a weight.
        conversion: Shared state.
        outputs: The nodes to return; default: all of the graph's outputs.
    """

    def __init__(
        self,
        graph: torch.fx.Graph,
        module: torch.nn.Module,
        weights: Mapping[str, str],
        conversion: Conversion,
        outputs: Sequence[torch.fx.Node] | None = None,
    ) -> None:
        super().__init__()
        self.module, self.weights, self.conversion = module, weights, conversion
        self.ids = {node: i for i, node in enumerate(graph.nodes)}
        self._parameters = [
            n for n in graph.nodes if n.op == "placeholder" and n.name not in weights and _is_dynamic_value(n)
        ]
        returned = graph.output_node().args[0]
        listed = returned if isinstance(returned, list | tuple) else (returned,)
        self._outputs = list(outputs) if outputs is not None else [n for n in listed if isinstance(n, torch.fx.Node)]

    def of_branch(self, branch: torch.fx.GraphModule) -> GraphDecoder:
        """The decoder of a branch of a control-flow op of this graph. The branch names its weights itself."""
        attributes = {n.name: str(n.target) for n in branch.graph.nodes if n.op == "get_attr"}
        return GraphDecoder(branch.graph, branch, attributes, self.conversion)

    def inputs(self) -> list[int]:
        return [self.ids[node] for node in self._parameters]

    def outputs(self) -> list[int]:
        return [self.ids[node] for node in self._outputs]

    def get_input_debug_name(self, index: int) -> str:
        return str(self._parameters[index].name)

    def get_input_signature_name(self, index: int) -> str:
        return str(self._parameters[index].name)

    def get_input_shape(self, index: int) -> PartialShape:
        value = self._parameters[index].meta.get("val")
        if not isinstance(value, torch.Tensor):
            return PartialShape([])
        return PartialShape([size if isinstance(size, int) else -1 for size in value.shape])

    def get_input_type(self, index: int) -> OVAny:
        return element_type(self._parameters[index])

    def get_op_type(self) -> str:
        return "graph"

    def output_list_size(self) -> int:
        return 0

    def visit_subgraph(self, visit: Callable[[Decoder], None]) -> None:
        for node in self.ids:
            if node.op == "output" or (node.op == "placeholder" and node.name not in self.weights):
                continue
            if node.op == "get_attr" and isinstance(attribute(self.module, node.target), torch.fx.GraphModule):
                continue
            if node.users:
                decoder = NodeDecoder(node, self)
                self.children.append(decoder)
                visit(decoder)


def _is_dynamic_value(node: torch.fx.Node) -> bool:
    return isinstance(node.meta.get("val"), torch.Tensor | torch.SymInt | torch.SymFloat | torch.SymBool)
