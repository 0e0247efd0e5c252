"""Parts of a whole, as hints, heat and reports show them."""

from bisect import bisect_right

BUCKET_LIMITS = (0.01, 0.03, 0.10, 0.30)


def share(part: float, whole: float) -> float:
    """0 to 1.  Counters read from a running target may be a little newer than their sum: never above 1."""
    return min(1.0, part / whole) if whole > 0 else 0.0


def heat_bucket(share: float) -> int:
    """0 below 1 %, 1 below 3 %, 2 below 10 %, 3 below 30 %, else 4."""
    return bisect_right(BUCKET_LIMITS, share)
