"""Forwards counted from hops, compared with a count message by message."""

from collections import Counter
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from analysis.metrics.forwards import COUNTS, FORWARDS_BY_TOPIC, NEEDED, count_forwards

NODES = st.sampled_from("abc")
HOPS = st.dictionaries(
    st.tuples(st.integers(1, 3), NODES, NODES, st.integers(1, 2)),  # message, src, dst, n-th hop
    st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 3)),  # sent, repeated, came
    max_size=20,
)
TYPES = {"priority": pa.int32(), "copies": pa.int64(), "sent": pa.int64(), "repeated": pa.int64()}
SCHEMA = pa.schema([(name, TYPES.get(name, pa.string())) for name in NEEDED])


def counted(hops: list[dict[str, Any]]) -> dict[tuple[str, str, int], Counter[str]]:
    found: dict[tuple[str, str, int], Counter[str]] = {}
    for node in "abc":
        for identity in sorted({hop["id"] for hop in hops}):
            of = [hop for hop in hops if hop["id"] == identity]
            out = [hop for hop in of if hop["src"] == node and hop["sent"]]
            into = [hop for hop in of if hop["dst"] == node and hop["copies"]]
            if out or into:
                own = of[0]["origin"] == node
                reported = found.setdefault((node, of[0]["topic"], of[0]["priority"]), Counter())
                reported["handled"] += 1
                reported["published"] += own
                reported["forwarded"] += bool(out) and not own
                reported["copies"] += sum(hop["sent"] for hop in out)
                reported["sent_again"] += sum(hop["sent"] for hop in out) - len(
                    {hop["dst"] for hop in out}
                )
                reported["repeated"] += sum(hop["repeated"] for hop in out)
    return found


@given(HOPS)
def test_the_counts_of_each_node_equal_a_count_message_by_message(
    crossed: dict[tuple[int, str, str, int], tuple[int, int, int]],
) -> None:
    about = {
        number: {"id": str(number), "origin": "abc"[number - 1], "topic": "xxy"[number - 1]}
        for number in (1, 2, 3)
    }
    hops = [
        {"src": src, "dst": dst, "priority": number, "sent": sent, "copies": came}
        | {"repeated": min(sent, repeated)}
        | about[number]
        for (number, src, dst, _), (sent, repeated, came) in crossed.items()
    ]
    table = count_forwards(pa.Table.from_pylist(hops, SCHEMA))
    assert table.schema == FORWARDS_BY_TOPIC
    rows = {(row["node"], row["topic"], row["priority"]): row for row in table.to_pylist()}
    assert {key: {name: row[name] for name in COUNTS} for key, row in rows.items()} == {
        key: {name: reported[name] for name in COUNTS} for key, reported in counted(hops).items()
    }
