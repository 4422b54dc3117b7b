"""The built-in link profiles: one row each, with where its numbers come from. A file's own profiles go before these.

Rates are nominal line rates, delays one way. Radio links hide most losses by sending again (which is their jitter),
so only lines that a policer cuts, or that share the air without a plan, lose packets here.
"""

from testbed.topology.model import Profile, Shape

_KBIT = 1_000.0
_MBIT = 1_000_000.0
_MS = 0.001


def _both(name: str, shape: Shape) -> Profile:
    return Profile(name, up=shape, down=shape)


_ROWS: tuple[Profile, ...] = (
    # Wired Ethernet as on a Raspberry Pi up to model 3 (100BASE-TX); within a building the delay is nothing.
    _both("lan", Shape(rate_bps=100 * _MBIT)),
    # 802.11n at some distance, shared: a third of the 65 Mbit/s of one stream, contention as jitter, a rare loss.
    _both(
        "wifi",
        Shape(
            rate_bps=20 * _MBIT, delay_s=3 * _MS, jitter_s=2 * _MS, loss=0.001, queue_bytes=128_000
        ),
    ),
    # UMTS Release 99, the bearers sold as "3G" in Japan: 384 kbit/s down, 64 kbit/s up; round trips of 150-200 ms.
    Profile(
        "3g-384k",
        up=Shape(rate_bps=64 * _KBIT, delay_s=80 * _MS, jitter_s=20 * _MS, queue_bytes=32_000),
        down=Shape(rate_bps=384 * _KBIT, delay_s=80 * _MS, jitter_s=20 * _MS, queue_bytes=64_000),
    ),
    # HSDPA category 8 (7.2 Mbit/s) with HSUPA category 3 (1.45 Mbit/s); measured round trips are about 70 ms.
    Profile(
        "hspa-7.2m",
        up=Shape(rate_bps=1.45 * _MBIT, delay_s=35 * _MS, jitter_s=10 * _MS, queue_bytes=128_000),
        down=Shape(rate_bps=7.2 * _MBIT, delay_s=35 * _MS, jitter_s=10 * _MS, queue_bytes=512_000),
    ),
    # The cheap always-on plans of virtual operators: 128 kbit/s both ways. The delay is 3G's and the detour to
    # the operator's own exchange; the waiting room is two seconds' worth, as long queues are usual there.
    _both(
        "mvno-128k",
        Shape(rate_bps=128 * _KBIT, delay_s=60 * _MS, jitter_s=15 * _MS, queue_bytes=32_000),
    ),
    # A plan whose monthly volume is used up: 200 kbit/s by a policer, which drops rather than waits.
    _both(
        "mvno-200k-throttled",
        Shape(
            rate_bps=200 * _KBIT,
            delay_s=60 * _MS,
            jitter_s=30 * _MS,
            loss=0.005,
            queue_bytes=25_000,
        ),
    ),
    # A contract for machines, as in Lee 2016 (4 to 20 kB/s, 1 kB = 1,000 bytes): its middle, 10 kB/s. The waiting room
    # is 2 s: deeper, TCP would take the wait for a loss and send everything twice.
    _both(
        "mvno-m2m-10kB",
        Shape(rate_bps=80 * _KBIT, delay_s=60 * _MS, jitter_s=15 * _MS, queue_bytes=20_000),
    ),
)

PROFILES: dict[str, Profile] = {profile.name: profile for profile in _ROWS}
