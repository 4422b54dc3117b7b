"""What nodes did with messages, from their hops; those of one message must not be divided over several tables. Pure."""

import pyarrow as pa
import pyarrow.compute as pc

NEEDED = ["id", "src", "dst", "origin", "topic", "priority", "copies", "sent", "repeated"]
COUNTS = ("published", "handled", "passed_on", "copies", "again", "repeated")
HANDLED = pa.schema(
    [
        ("node", pa.string()),
        ("topic", pa.string()),
        ("priority", pa.int32()),
        *((name, pa.int64()) for name in COUNTS),
    ]
)


def handled_by(hops: pa.Table) -> pa.Table:
    """By node, topic and priority, as HANDLED: how many messages it had, and what it sent of them."""
    of = ["id", "topic", "priority", "origin"]
    # A message may cross from one node to another several times, as another hop of its way each time.
    sent = _summed(hops.filter(pc.field("sent") > 0), ["src", "dst", *of], ["sent", "repeated"])
    came = hops.filter(pc.field("copies") > 0)
    nothing = pa.array([0] * came.num_rows, pa.int64())
    sides = [
        sent.select(["src", *of, "sent", "repeated"]).append_column(
            "again", pc.subtract(sent["sent"], 1)
        ),
        came.select(["dst", *of])
        .append_column("sent", nothing)
        .append_column("repeated", nothing)
        .append_column("again", nothing),
    ]
    names = ["node", *of, "copies", "repeated", "again"]
    touched = pa.concat_tables([side.rename_columns(names) for side in sides])
    each = _summed(touched, ["node", *of], ["copies", "repeated", "again"])
    own = pc.equal(each["node"], each["origin"])
    told = {
        **{
            name: each[name]
            for name in ("node", "topic", "priority", "copies", "again", "repeated")
        },
        "published": own.cast(pa.int64()),
        "handled": pa.array([1] * each.num_rows, pa.int64()),
        "passed_on": pc.and_(pc.invert(own), pc.greater(each["copies"], 0)).cast(pa.int64()),
    }
    return _summed(pa.table(told), ["node", "topic", "priority"], list(COUNTS)).select(
        HANDLED.names
    )


def _summed(rows: pa.Table, keys: list[str], columns: list[str]) -> pa.Table:
    found = rows.group_by(keys, use_threads=False).aggregate([(name, "sum") for name in columns])
    return found.rename_columns([name.removesuffix("_sum") for name in found.column_names])
