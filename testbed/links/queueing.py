# mypy: disable-error-code="misc"
"""Messages about queueing disciplines, declared in pyroute2's way.

pyroute2's own `tbf` and `netem` count in scheduler ticks and 32 bits; these use bytes and nanoseconds.
"""

from pyroute2.netlink import nla, nlmsg


class Queueing(nlmsg):
    """struct tcmsg (linux/rtnetlink.h)."""

    prefix = "TCA_"
    fields = (
        ("family", "B"),
        ("pad1", "B"),
        ("pad2", "H"),
        ("index", "i"),
        ("handle", "I"),
        ("parent", "I"),
        ("info", "I"),
    )


class Plain(Queueing):
    """A discipline by its kind alone."""

    nla_map = (("TCA_UNSPEC", "none"), ("TCA_KIND", "asciiz"))


class Tbf(Queueing):
    """With TCA_TBF_BURST in bytes (Linux 3.13) no ticks and no rate tables are needed."""

    nla_map = (
        ("TCA_UNSPEC", "none"),
        ("TCA_KIND", "asciiz"),
        ("TCA_OPTIONS", "options"),
    )

    class options(nla):  # noqa: N801 - pyroute2's convention
        nla_map = (
            ("TCA_TBF_UNSPEC", "none"),
            ("TCA_TBF_PARMS", "qopt"),
            ("TCA_TBF_RTAB", "none"),
            ("TCA_TBF_PTAB", "none"),
            ("TCA_TBF_RATE64", "uint64"),
            ("TCA_TBF_PRATE64", "uint64"),
            ("TCA_TBF_BURST", "uint32"),
        )

        class qopt(nla):  # noqa: N801
            """struct tc_tbf_qopt (linux/pkt_sched.h)."""

            fields = (
                ("rate_cell_log", "B"),
                ("rate_linklayer", "B"),
                ("rate_overhead", "H"),
                ("rate_cell_align", "h"),
                ("rate_mpu", "H"),
                ("rate", "I"),
                ("peak_cell_log", "B"),
                ("peak_linklayer", "B"),
                ("peak_overhead", "H"),
                ("peak_cell_align", "h"),
                ("peak_mpu", "H"),
                ("peak", "I"),
                ("limit", "I"),
                ("buffer", "I"),
                ("mtu", "I"),
            )


class Netem(Queueing):
    """With the 64-bit times in nanoseconds (Linux 4.15) no ticks are needed."""

    nla_map = (
        ("TCA_UNSPEC", "none"),
        ("TCA_KIND", "asciiz"),
        ("TCA_OPTIONS", "options"),
    )

    class options(nla):  # noqa: N801
        fields = (
            ("latency", "I"),
            ("limit", "I"),
            ("loss", "I"),
            ("gap", "I"),
            ("duplicate", "I"),
            ("jitter", "I"),
        )
        nla_map = (
            ("TCA_NETEM_UNSPEC", "none"),
            ("TCA_NETEM_CORR", "none"),
            ("TCA_NETEM_DELAY_DIST", "none"),
            ("TCA_NETEM_REORDER", "none"),
            ("TCA_NETEM_CORRUPT", "none"),
            ("TCA_NETEM_LOSS", "none"),
            ("TCA_NETEM_RATE", "rate"),
            ("TCA_NETEM_ECN", "none"),
            ("TCA_NETEM_RATE64", "uint64"),
            ("TCA_NETEM_PAD", "none"),
            ("TCA_NETEM_LATENCY64", "int64"),
            ("TCA_NETEM_JITTER64", "int64"),
            ("TCA_NETEM_SLOT", "none"),
            ("TCA_NETEM_SLOT_DIST", "none"),
            ("TCA_NETEM_PRNG_SEED", "uint64"),
        )

        class rate(nla):  # noqa: N801
            """struct tc_netem_rate."""

            fields = (
                ("rate", "I"),
                ("packet_overhead", "i"),
                ("cell_size", "I"),
                ("cell_overhead", "i"),
            )
