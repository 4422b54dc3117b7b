"""`python3 -m nodes node.json` (a node) and `python3 -m nodes board ...` (help for a board), also from the zipapp."""

import os
import sys

if sys.argv[1:2] == ["board"]:
    from nodes.board.main import main as board

    exit_code = board(sys.argv[2:])
else:
    from nodes.runtime.main import main

    exit_code = main(sys.argv[1:])
sys.stderr.flush()
# All is written and closed; to take the interpreter apart would cost 20 ms more.
os._exit(exit_code)
