"""Captures of other programs, made by tcpdump: neither we nor tshark wrote the traffic or the capture.

The programs talk over a narrow link between two network namespaces, made and removed by one process. Nothing outside
sees any of it.
"""

import shutil
import subprocess
from pathlib import Path

PROGRAMS = {
    "tshark": "tshark",
    "tcpdump": "tcpdump",
    "iperf3": "iperf3",
    "mosquitto": "mosquitto",
    "mosquitto_pub": "mosquitto-clients",
    "curl": "curl",
    "ip": "iproute2",
}
SERVER, CLIENT = "10.99.0.1", "10.99.0.2"
# Small packets and a short queue: packets are lost, and sent again.
NARROW = "rate 8mbit burst 4000 limit 12000"


def lacking() -> list[str]:
    """Packages that are not installed."""
    return sorted({package for name, package in PROGRAMS.items() if shutil.which(name) is None})


def capture(folder: Path, serve: str, talk: str) -> Path:
    """Capture the packets on the server's interface while server and client run; both are shell commands."""
    path = folder / "foreign.pcap"
    script = _SCRIPT.format(folder=folder, path=path, serve=serve, talk=talk)
    alone = ["--net", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child"]
    done = subprocess.run(
        ["unshare", *alone, "sh", "-c", script],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return path


# The shell is the first process of its own process namespace, so that all others end with it.
_SCRIPT = f"""
set -e
mount -t tmpfs tmpfs /run
mkdir -p /run/netns
ip link set lo up
ip netns add client
ip link add s type veth peer name c netns client
ip addr add {SERVER}/24 dev s
ip link set s up
ip -n client addr add {CLIENT}/24 dev c
ip -n client link set c up
ip -n client link set lo up
tc qdisc add dev s root tbf {NARROW}
ip netns exec client tc qdisc add dev c root tbf {NARROW}
cd {{folder}}
tcpdump -i s --immediate-mode -U -B 8192 -s 0 --time-stamp-precision=nano -w {{path}} 2>tcpdump.txt &
listening=$!
n=0; until grep -q listening tcpdump.txt; do n=$((n + 1)); [ $n -lt 600 ]; sleep 0.1; done
( {{serve}} ) >server.txt 2>&1 &
( ip netns exec client sh -c '{{talk}}' ) >client.txt 2>&1 || {{{{ cat client.txt server.txt >&2; exit 1; }}}}
size=none; until [ $size = $(stat -c %s {{path}}) ]; do size=$(stat -c %s {{path}}); sleep 0.5; done
kill -INT $listening
wait $listening
grep "dropped by kernel" tcpdump.txt | grep -q "^0 " || {{{{ cat tcpdump.txt >&2; exit 1; }}}}
"""
