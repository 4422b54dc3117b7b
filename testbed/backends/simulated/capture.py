"""What a capture would hold of one direction of a link: counts of packets, and when each part of a stream passed."""

from array import array

from testbed.backends.simulated.link_layer import (
    ANSWER_BYTES,
    ETHERNET_BYTES,
    IP_BYTES,
    Flow,
    Kind,
    Packet,
)
from testbed.backends.simulated.loop import SECOND


class CapturedStream:
    """The segments of one stream, in the order in which they passed."""

    def __init__(self) -> None:
        self.starts, self.lengths, self.times = array("q"), array("q"), array("q")


class DirectionCapture:
    """One direction of a link."""

    def __init__(self, link: str, direction: str) -> None:
        self.link = link
        self.direction = direction
        self.streams: dict[Flow, CapturedStream] = {}
        self.packets, self.wire_bytes, self.tcp_bytes = 0, 0, 0
        self.tcp_packets, self.answers, self.acks, self.repeated_openings = 0, 0, 0, 0
        self.datagrams, self.datagram_bytes = 0, 0  # of the background
        self.by_second: dict[int, list[int]] = {}  # packets and bytes of each
        self._opened: set[tuple[Flow, Kind]] = set()

    def see(self, packet: Packet, now: int) -> None:
        """Count a packet that passes here."""
        self.packets += 1
        self.wire_bytes += packet.size
        second = self.by_second.setdefault(now // SECOND, [0, 0])
        second[0] += 1
        second[1] += packet.size
        kind = packet.kind
        if kind is Kind.ANSWER:
            self.answers += 1
            return
        if kind is Kind.LOAD:
            self.datagrams += 1
            self.datagram_bytes += packet.size
            return
        self.tcp_packets += 1
        self.tcp_bytes += packet.tcp_bytes
        if kind is Kind.DATA:
            seen = self.streams.get(packet.flow)
            if seen is None:
                seen = self.streams[packet.flow] = CapturedStream()
            seen.starts.append(packet.start)
            seen.lengths.append(packet.length)
            seen.times.append(now)
        elif kind is Kind.ACK or kind is Kind.PROBE or kind is Kind.RESET:
            self.acks += 1
        elif (packet.flow, kind) in self._opened:
            self.repeated_openings += 1
        else:
            self._opened.add((packet.flow, kind))

    def counts(self) -> dict[str, int]:
        """The counts that need no reading of streams."""
        return {
            "packets": self.packets,
            "wire_bytes": self.wire_bytes,
            "ethernet_bytes": ETHERNET_BYTES * self.tcp_packets,
            "ip_bytes": IP_BYTES * self.tcp_packets,
            "tcp_bytes": self.tcp_bytes,
            "udp_acks_bytes": ANSWER_BYTES * self.answers,
            "datagrams_bytes": self.datagram_bytes,
            "datagram_packets": self.datagrams,
            "tcp_packets": self.tcp_packets,
            "ack_packets": self.acks,
            "udp_ack_packets": self.answers,
            "retransmitted_packets": self.repeated_openings,
            "connections": len({flow for flow, _ in self._opened} | set(self.streams)),
        }
