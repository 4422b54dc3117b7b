"""The built-in link profiles: one row each, with the source of its numbers. A file's own profiles have precedence.

Rates are nominal, delays one way. Radio links hide most losses by retransmissions (which cause their jitter), so only
links with a policer, or with uncoordinated access to the radio channel, lose packets here.
"""

from dataclasses import dataclass, replace

from nodes.plugins import Plugin, PluginError, Registry
from testbed.topology.model import Profile, Shape

GROUP = "testbed.profiles"
REPAIR = "`testbed plugins` lists what packages bring; repair or uninstall this one"

_KBIT = 1_000.0
_MBIT = 1_000_000.0
_MS = 0.001


@dataclass(frozen=True, slots=True)
class BuiltIn:
    """A profile and the source of its numbers: a standard, a paper, a statement of vendors, or our estimate."""

    profile: Profile
    source: str


def _both(name: str, shape: Shape) -> Profile:
    return Profile(name, up=shape, down=shape)


_ROWS: tuple[BuiltIn, ...] = (
    BuiltIn(
        _both("lan", Shape(rate_bps=100 * _MBIT)),
        "IEEE 802.3 100BASE-TX, the port of a Raspberry Pi up to model 3. "
        "Estimate: within a building there is no delay worth naming.",
    ),
    BuiltIn(
        _both(
            "wifi",
            Shape(
                rate_bps=20 * _MBIT,
                delay_s=3 * _MS,
                jitter_s=2 * _MS,
                loss=0.001,
                queue_bytes=128_000,
            ),
        ),
        "IEEE 802.11n, one stream of 20 MHz: 65 Mbit/s. "
        "Estimate: a third of it at some distance and shared; contention as jitter, a rare loss.",
    ),
    BuiltIn(
        Profile(
            "3g-384k",
            up=Shape(rate_bps=64 * _KBIT, delay_s=80 * _MS, jitter_s=20 * _MS, queue_bytes=32_000),
            down=Shape(
                rate_bps=384 * _KBIT, delay_s=80 * _MS, jitter_s=20 * _MS, queue_bytes=64_000
            ),
        ),
        "3GPP Release 99 (UMTS): bearers of 384 kbit/s down and 64 kbit/s up, as sold as 3G in Japan. "
        "Estimate: round trips of 150 to 200 ms, queues.",
    ),
    BuiltIn(
        Profile(
            "hspa-7.2m",
            up=Shape(
                rate_bps=1.45 * _MBIT, delay_s=35 * _MS, jitter_s=10 * _MS, queue_bytes=128_000
            ),
            down=Shape(
                rate_bps=7.2 * _MBIT, delay_s=35 * _MS, jitter_s=10 * _MS, queue_bytes=512_000
            ),
        ),
        "3GPP TS 25.306: HSDPA category 8 (7.2 Mbit/s), E-DCH category 3 (1.45 Mbit/s). "
        "Estimate: round trips of about 70 ms, queues.",
    ),
    # Half duplex: one direction at a time has its peak rate; our two shapers are independent of each other.
    BuiltIn(
        Profile(
            "lte-m",
            up=Shape(rate_bps=375 * _KBIT, delay_s=50 * _MS, jitter_s=20 * _MS, queue_bytes=64_000),
            down=Shape(
                rate_bps=300 * _KBIT, delay_s=50 * _MS, jitter_s=20 * _MS, queue_bytes=64_000
            ),
        ),
        "3GPP Release 13, category M1 (TS 36.306): peak of 1 Mbit/s; with half duplex, as most modules are, "
        "375 kbit/s up and 300 kbit/s down. Vendors state latencies of 50 to 100 ms. "
        "Estimate: jitter, queue; that both directions share the air is not emulated.",
    ),
    BuiltIn(
        Profile(
            "nb-iot",
            up=Shape(
                rate_bps=62.5 * _KBIT, delay_s=400 * _MS, jitter_s=100 * _MS, queue_bytes=16_000
            ),
            down=Shape(
                rate_bps=26 * _KBIT, delay_s=400 * _MS, jitter_s=100 * _MS, queue_bytes=16_000
            ),
        ),
        "3GPP Release 13, category NB1 (TS 36.306): with its scheduling gaps 26 kbit/s down and "
        "62.5 kbit/s up (multi-tone). Estimate: delay and jitter of a connected device in good coverage, queue. "
        "Not emulated: waking up from idle, for which TR 45.820 allows 10 s and counts 1.6 s at best.",
    ),
    # The queue holds two seconds at the link's rate: long queues are usual there.
    BuiltIn(
        _both(
            "mvno-128k",
            Shape(rate_bps=128 * _KBIT, delay_s=60 * _MS, jitter_s=15 * _MS, queue_bytes=32_000),
        ),
        "Statements of virtual operators on their cheap always-on plans: 128 kbit/s both ways. "
        "Estimate: 3G's delay and the detour to the operator's own exchange, queue of 2 s.",
    ),
    BuiltIn(
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
        "Statements of virtual operators on plans whose monthly volume is used up: 200 kbit/s. "
        "Estimate: a policer, which drops rather than waits: loss, short queue.",
    ),
    # In a queue of more than 2 s, TCP would take the wait for a loss and retransmit everything.
    BuiltIn(
        _both(
            "mvno-m2m-10kB",
            Shape(rate_bps=80 * _KBIT, delay_s=60 * _MS, jitter_s=15 * _MS, queue_bytes=20_000),
        ),
        "Lee 2016: contracts for machines of 4 to 20 kB/s (1 kB = 1,000 bytes), here the middle. "
        "Estimate: delay as mvno-128k, queue of 2 s.",
    ),
)

BUILT_IN: dict[str, BuiltIn] = {row.profile.name: row for row in _ROWS}


def _row(plugin: Plugin) -> BuiltIn:
    """The profile that another package brings, under the name that it declares."""
    row = plugin.load()
    if not isinstance(row, BuiltIn):
        raise PluginError(
            f"package {plugin.package} brings {plugin.value!r} as the link profile {plugin.name!r}, "
            f"which is no {BuiltIn.__name__}"
        )
    return replace(row, profile=replace(row.profile, name=plugin.name))


# With those of other packages (docs/dev/add-a-link-profile.md).
ROWS: Registry[BuiltIn] = Registry(GROUP, BUILT_IN, _row)
PROFILES: Registry[Profile] = Registry(
    GROUP,
    {name: row.profile for name, row in BUILT_IN.items()},
    lambda plugin: _row(plugin).profile,
)
