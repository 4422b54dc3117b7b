"""Rain from a CSV file: its columns are `seconds` and `mm_per_h`, each row holds until the next."""

import csv
import pathlib

MAX_BYTES = 1024 * 1024
HEADS = ["seconds", "mm_per_h"]
MOST_MM_H = 1_000.0


class RainFileError(ValueError):
    """The file cannot be used: a sentence, and what it should be like."""

    hint = f"the first line is {','.join(HEADS)}, the others two numbers each, in the order of time"


def read_rain(path: pathlib.Path) -> tuple[tuple[float, float], ...]:
    """(from this second on, mm/h); RainFileError if that is not what stands there."""
    try:
        if not path.is_file() or path.stat().st_size > MAX_BYTES:
            raise RainFileError(f"{path} is no file of at most {MAX_BYTES // 1024} KiB")
        rows = list(csv.reader(path.read_text(encoding="utf-8-sig").splitlines()))
    except (OSError, UnicodeDecodeError) as error:
        raise RainFileError(f"{path} cannot be read: {error}") from error
    if len(rows) < 2 or [head.strip() for head in rows[0]] != HEADS:
        raise RainFileError(
            f"{path} does not begin with the columns {' and '.join(HEADS)}, and a row"
        )
    series: list[tuple[float, float]] = []
    for number, row in enumerate(rows[1:], 2):
        at_s, rate = _numbers(path, number, row)
        if series and at_s <= series[-1][0]:
            raise RainFileError(
                f"{path}, line {number}: {at_s:g} s is not after {series[-1][0]:g} s"
            )
        series.append((at_s, rate))
    return tuple(series)


def _numbers(path: pathlib.Path, number: int, row: list[str]) -> tuple[float, float]:
    try:
        at_s, rate = (float(text) for text in row)
    except ValueError:
        raise RainFileError(f"{path}, line {number}: two numbers are expected here") from None
    if not (0 <= at_s < float("inf") and 0 <= rate <= MOST_MM_H):
        raise RainFileError(f"{path}, line {number}: out of range (0 to {MOST_MM_H:,g} mm/h)")
    return at_s, rate
