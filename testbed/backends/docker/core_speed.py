"""Measures how fast one core runs Python: `python3 core_speed.py` prints it. Run it on a board for the board's figure.

It does the arithmetic of the public benchmark https://github.com/alexdedyura/cpu-benchmark, of which results on many
machines are known: 999 powers and 19,998 divisions of floating-point numbers are one repetition, and the benchmark
does 10,000 of them. This file imports nothing of ours: it also runs inside containers.
"""

import time

BENCHMARK_REPETITIONS = 10_000
ROUNDS = 8
ROUND_S = 0.03


# Text, as it must run as module code, like the benchmark: code in functions is faster.
REPETITION = """
for exponent in range(1, 1_000):
    3.141592 * 2 ** exponent
for number in range(1, 10_000):
    float(number) / 3.141592
for number in range(1, 10_000):
    float(3.141592) / number
"""


def core_speed() -> float:
    """Repetitions per second of processor time; the best of several rounds, as others use the machine, too."""
    best, repetition, names = 0.0, compile(REPETITION, "repetition", "exec"), dict[str, object]()
    for _ in range(ROUNDS):
        done, begun = 0, time.thread_time()
        while (took := time.thread_time() - begun) < ROUND_S:
            exec(repetition, names)
            done += 1
        best = max(best, done / took)
    return best


if __name__ == "__main__":
    print(core_speed())  # noqa: T201
