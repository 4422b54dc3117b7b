"""Lee 2016: delays of urgent messages and the traffic that they cost, cell by cell, beside the thesis' numbers."""
