"""The shell around the cores: the only place in `nodes` with sockets, clocks, disks and signals."""
