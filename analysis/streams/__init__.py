"""TCP reassembly: from the packets of a connection to the bytes of its two directions, and when each was seen."""
