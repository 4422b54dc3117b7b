"""How evenly load is spread over nodes: one formula for columns of Spark and for plain numbers."""

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from pyspark.sql import Column

Quantity = TypeVar("Quantity", float, "Column")


def jain(total: Quantity, squares: Quantity, nodes: Quantity) -> Quantity:
    """Jain's index from the sum of all loads, the sum of their squares, and how many nodes there are.

    1 if all have the same load, 1/n if one of n has all of it. Every node counts, also one without load: Kawakami 2016
    divides by the publishers only, but its own example comes out right with the subscriber, too.
    """
    return total * total / (nodes * squares)
