"""TCP reassembly: from the packets of a connection to the bytes of its two directions, with the time of each byte."""
