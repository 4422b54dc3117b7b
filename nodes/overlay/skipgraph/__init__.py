"""A Skip Graph with several keys a node, as a message protocol without I/O.

`node` puts the parts together: `ring` keeps level 0, `levels` all levels above it, `routing` searches, and `multicast`
serves ranges of keys. `nodes.protocol.skipgraph_messages` defines the messages between nodes. Keys are any bytes.
"""
