"""What the thesis reports in its text, and which figure shows what. A number that is not here is not known."""

from typing import Any

from testbed.papers.lee2016.series import DEFAULT, DMPQ_1443, DMPQ_10000, PQ_PC

LARGEST_DELAY_S = {  # of urgent messages at 7 kB/s
    DEFAULT.key: 622.48,
    PQ_PC.key: 15.20,
    DMPQ_10000.key: 1.59,
    DMPQ_1443.key: 0.37,
}
LARGEST_DELAY_RATE = 7  # kB/s
GROWTH = 0.5  # seconds each second, `default` at 7 kB/s ("about")

# The figures follow each other as the experiments do; which number shows which rate is inferred from that order.
SHARES_BY_METHOD = {"5.5": 10, "5.6": 11, "5.7": 13, "5.8": 15, "5.9": 17, "5.10": 20}
SHARES_BY_DV = {"5.14": 7, "5.15": 9, "5.16": 11, "5.17": 15, "5.18": 20}


def numbers() -> dict[str, Any]:
    """All of it, for the analysis."""
    return {
        "largest_delay_s": LARGEST_DELAY_S,
        "largest_delay_rate_kBps": LARGEST_DELAY_RATE,
        "growth": GROWTH,
        "shares_by_method": SHARES_BY_METHOD,
        "shares_by_dv": SHARES_BY_DV,
    }
