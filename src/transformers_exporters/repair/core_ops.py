"""The closed list of ops that every backend lowers: the shared normal form of a traced graph.

It keeps the ops whole for which runtimes have a fast kernel (attention, norms, convolutions, linear layers); an op that is not
here is decomposed, and a graph that still holds one is refused unless its backend asks for it. An in-place op counts as its functional twin.
`tests/repair/test_core_ops.py` runs every one of them on every backend against eager: an op joins the list with a case there.
"""

from __future__ import annotations

_FAMILIES: dict[str, str] = {
    "functions of one number": """
        abs acos acosh asin asinh atan atanh ceil clamp clamp_max clamp_min cos cosh elu celu erf exp expm1 floor gelu
        hardshrink hardsigmoid hardswish hardtanh isfinite isinf isnan leaky_relu log log10 log1p log2
        logical_not mish nan_to_num neg pow.Scalar pow.Tensor_Scalar reciprocal relu relu6 round rsqrt selu sigmoid sign silu
        sin sinh softplus sqrt square tan tanh threshold
    """,
    "a tensor and a number": """
        add.Scalar div.Scalar eq.Scalar fmod.Scalar ge.Scalar gt.Scalar le.Scalar lt.Scalar mul.Scalar ne.Scalar
        remainder.Scalar rsub.Scalar
    """,
    "two tensors": """
        add.Tensor addcdiv addcmul atan2 clamp.Tensor clamp_max.Tensor clamp_min.Tensor div.Tensor div.Tensor_mode eq.Tensor
        floor_divide fmod.Tensor ge.Tensor gt.Tensor le.Tensor lerp.Scalar lerp.Tensor lt.Tensor maximum minimum mul.Tensor
        ne.Tensor pow.Tensor_Tensor prelu remainder.Tensor rsub.Tensor sub.Tensor
    """,
    "choices": """
        masked_fill.Scalar masked_fill.Tensor where.Scalar where.ScalarOther where.ScalarSelf where.self
    """,
    "whole numbers and booleans": """
        __and__.Tensor __or__.Tensor all all.dim any any.dim bitwise_and.Tensor bitwise_not bitwise_or.Tensor
        bitwise_xor.Tensor logical_and logical_or logical_xor one_hot
    """,
    "reductions": """
        _log_softmax _softmax amax amin argmax argmin cumsum linalg_vector_norm log_softmax.int logsumexp max max.dim mean
        mean.dim min min.dim prod prod.dim_int softmax.int std.correction sum sum.dim_IntList topk var.correction
    """,
    "shapes": """
        cat chunk constant_pad_nd expand expand_as flatten.using_ints flip movedim.int narrow pad permute repeat
        repeat_interleave.self_int reshape roll select.int slice.Tensor split.Tensor split_with_sizes squeeze squeeze.dim
        squeeze.dims stack swapaxes sym_size.int t tile transpose.int tril triu unbind.int unflatten.int unfold unsqueeze
        view view_as
    """,
    "making and casting": """
        _local_scalar_dense _to_copy alias arange arange.start arange.start_step clone contiguous copy detach dropout eye
        fill.Scalar fill.Tensor full full_like item lift_fresh_copy linspace meshgrid.indexing new_full new_ones new_zeros
        ones ones_like scalar_tensor to.device to.dtype to.dtype_layout type_as zeros zeros_like
    """,
    "random numbers": "rand randn",
    "indexing": """
        embedding gather index.Tensor index_add index_copy index_put index_select masked_scatter nonzero scatter.src
        scatter.value scatter_add select_scatter slice_scatter
    """,
    "matrices": """
        addmm baddbmm bmm einsum linear matmul mm mv scaled_dot_product_attention
    """,
    "convolution and pooling": """
        avg_pool1d avg_pool2d conv1d conv1d.padding conv2d conv2d.padding conv3d
        conv_transpose1d conv_transpose2d.input convolution glu max_pool1d max_pool2d max_pool2d_with_indices
    """,
    "resizing": """
        grid_sampler im2col pixel_shuffle pixel_unshuffle reflection_pad1d reflection_pad2d replication_pad1d
        replication_pad2d upsample_bicubic2d.vec upsample_bilinear2d.vec upsample_linear1d.vec upsample_nearest1d.vec
        upsample_nearest2d.vec upsample_nearest3d.vec upsample_trilinear3d.vec
    """,
    "normalization": """
        batch_norm group_norm instance_norm layer_norm rms_norm
    """,
}

#: Full names, as in `str(node.target)`: `aten.add.Tensor`.
CORE_OPS: frozenset[str] = frozenset(
    f"aten.{name}" if "." in name else f"aten.{name}.default" for names in _FAMILIES.values() for name in names.split()
)
