"""`python3 -m nodes node.json`, and the same from the zipapp."""

import sys

from nodes.runtime.main import main

sys.exit(main(sys.argv[1:]))
