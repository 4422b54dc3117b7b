"""A Skip Graph with several keys a node, as a message protocol without I/O.

`node` is the whole; `ring` keeps level 0, `levels` all above, `routing` searches, `multicast` serves ranges,
`nodes.protocol.skipgraph_messages` is what goes between nodes. Keys are any bytes.
"""
