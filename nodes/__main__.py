"""`python3 -m nodes node.json`, and the same from the zipapp."""

import os
import sys

from nodes.runtime.main import main

exit_code = main(sys.argv[1:])
sys.stderr.flush()
# All is written and closed; to take the interpreter apart would cost 20 ms more.
os._exit(exit_code)
