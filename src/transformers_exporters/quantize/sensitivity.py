"""Which weights keep more bits where most get 4."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Product:
    """A product with a constant matrix.

    Attributes:
        rows: Outputs.
        columns: Inputs.
        error: Squared error of its 4-bit values relative to its squared values; 1 where nobody measured it.
    """

    rows: int
    columns: int
    error: float = 1.0


def most_sensitive(products: Mapping[str, Product], share: float) -> set[str]:
    """Names of the products to keep more bits for: at most `share` of all their values.

    Those with the largest relative error come first, and those with many inputs for each output: an output sums the errors
    of all its inputs. These are the keys and values of grouped-query attention and the projections back to the hidden size.
    """
    left = share * sum(product.rows * product.columns for product in products.values())
    chosen: set[str] = set()
    for name, product in sorted(products.items(), key=lambda item: -item[1].error * item[1].columns / item[1].rows):
        left -= product.rows * product.columns
        if left < 0:
            break
        chosen.add(name)
    return chosen
