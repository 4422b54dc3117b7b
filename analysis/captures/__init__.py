"""Anybody's captures, however damaged, as columns: pcap and pcapng, whole or a byte range at a time.

    storage.py   where files are: on this machine, or in a store that Arrow knows by its address
    files.py     which files; gz and zst seen through
    finding.py   where records begin: one after the other, and again behind what is none
    classic.py   pcap                 blocks.py   pcapng
    layers.py    what is in the packets, for whole columns at once
    columns.py   packets and problems as Arrow batches
    pieces.py    big files in byte ranges that begin and end between records
    growing.py   files that still grow: how far they are whole
    reading.py   a piece of a file, window by window
    parquet.py   pieces as a Parquet file

`analysis.captures.source` makes them a data source of Spark.
"""
