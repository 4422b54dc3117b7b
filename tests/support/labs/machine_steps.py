"""Run commands inside a virtual machine, one after the other: `machine_steps.py '{"name": ["program", ...], ...}'`.

Print one JSON line for each as soon as it has ended, so that one boot serves many tests.
"""

import json
import subprocess
import sys
import time

for name, command in json.loads(sys.argv[1]).items():
    begin = time.monotonic()
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    result = {"step": name, "code": done.returncode, "out": done.stdout, "err": done.stderr}
    print(json.dumps({**result, "seconds": round(time.monotonic() - begin, 1)}), flush=True)  # noqa: T201
