"""Reads captures of any origin, however damaged, as columns: pcap and pcapng, whole or a byte range at a time.

    storage.py   where files are: on this machine, or in an object store that Arrow knows by its address
    files.py     which files to read; decompresses gz and zst
    records.py   where records begin: one after the other, and again after damaged bytes
    pcap.py      the pcap format           pcapng.py   the pcapng format
    layers.py    the headers in packets, for whole columns at once
    columns.py   packets and problems as Arrow batches
    pieces.py    big files in byte ranges that begin and end between records
    growing.py   files that still grow: up to where they are complete
    windows.py   a piece of a file, window by window
    parquet.py   pieces to a Parquet file
    clock.py     a node's clock, corrected to the lab's
    packets.py   the packets of a lab's own capture as numpy columns

`analysis.captures.source` registers them as a Spark data source.
"""
