"""`trace.images.anyres` against the loops of transformers, image by image."""

import random

import pytest
import torch
from transformers.models.llava_next.modeling_llava_next import (
    get_anyres_image_grid_shape,
    image_size_to_num_patches,
    unpad_image,
)

from transformers_exporters.trace.images.anyres import best_grid, packed_tokens

GRIDS = [
    ([[336, 672], [672, 336], [672, 672], [1008, 336], [336, 1008]], 336, 24),
    ([[16, 16], [16, 32], [32, 16], [32, 48]], 16, 4),
]


def some_sizes() -> torch.Tensor:
    return torch.tensor([[random.randint(5, 1500), random.randint(5, 1500)] for _ in range(3)])


@pytest.mark.parametrize(("pinpoints", "tile", "side"), GRIDS)
def test_grid(pinpoints, tile, side):
    random.seed(0)
    for _ in range(100):
        sizes = some_sizes()
        for size, grid in zip(sizes, best_grid(sizes, pinpoints, tile).tolist(), strict=True):
            assert tuple(grid) == tuple(get_anyres_image_grid_shape(size, pinpoints, tile))
            assert 1 + grid[0] * grid[1] == image_size_to_num_patches(size, pinpoints, tile)


@pytest.mark.parametrize("newline", [True, False])
@pytest.mark.parametrize(("pinpoints", "tile", "side"), GRIDS)
def test_tokens(pinpoints, tile, side, newline):
    random.seed(1)
    for _ in range(25):
        sizes = some_sizes()
        grid = best_grid(sizes, pinpoints, tile)
        features = [torch.randn(1 + int(rows * columns), side * side, 3) for rows, columns in grid]
        end = torch.randn(3)
        wanted = []
        for feature, size, shape in zip(features, sizes, grid.tolist(), strict=True):
            image = feature[1:].view(*shape, side, side, -1).permute(4, 0, 2, 1, 3).flatten(1, 2).flatten(2, 3)
            image = unpad_image(image, size)
            if newline:
                image = torch.cat([image, end[:, None, None].expand(*image.shape[:-1], 1)], dim=-1)
            wanted.append(torch.cat([feature[0], image.flatten(1, 2).transpose(0, 1)]))
        tokens = packed_tokens(sizes, grid, side, int(newline))
        table = torch.cat([end[None], torch.cat(features).flatten(0, 1)])
        assert tokens.counts.tolist() == [len(image) for image in wanted]
        assert torch.equal(table[tokens.source + 1], torch.cat(wanted))
