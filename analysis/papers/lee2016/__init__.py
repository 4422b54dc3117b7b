"""Lee 2016: delays of urgent messages and their traffic, cell by cell, compared with the thesis."""
