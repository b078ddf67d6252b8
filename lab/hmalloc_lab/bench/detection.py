"""How a change is told from chance, how often wrongly, and how many rounds that takes.

What is worse by the threshold is to be found; what is worse by less than half of it is not to be reported.  So every
comparison is tested, one-sidedly, against a change by half the threshold (halves of logarithms: of 3 %, 1.49 %), by ranks,
which one disturbed round cannot move: Wilcoxon's signed ranks where the two took part in the same rounds, Mann and
Whitney's of the two campaigns' rounds otherwise.  Half, because a link order or a page colour moves a program by 1 % in
either direction, is drawn once per build, and is nobody's slowdown; and because a test against the threshold itself finds
a change by just the threshold in one of twenty campaigns.

There are hundreds of comparisons.  Benjamini and Hochberg's procedure bounds the false ones among those reported; where
nothing has changed every report is false, so that it bounds the campaigns with a false alarm: FALSE_ALARMS, half of it for
the single cells, half for the means: there the cells' changes are ranked, or, of few cells, put to Student's test.
"""

import math
from collections.abc import Sequence
from functools import cache

import numpy as np
from scipy import stats

FALSE_ALARMS = 0.05  # of comparisons in which nothing changed by more than half the threshold
MISSED = 0.05        # of changes by the threshold, for which rounds_needed() is
_MOST_ROUNDS = 100_000
# What disturbed runs, one in thirty, and rare levels of chance cost beyond the normal noise that the formula is for; from
# simulations (tests/controls).
_RESERVE = 1.5
_ENOUGH_CELLS = 10
# Below, no order of the ranks of one sample is rare among hundreds of comparisons; there Student's test has a say as well,
# or a cell twice as slow would be acquitted.
_ENOUGH_ROUNDS = 20


def boundary(threshold: float) -> float:
    """The factor against which is tested; its square is 1 + threshold."""
    return math.sqrt(1 + threshold)


def chance(after: Sequence[float], before: Sequence[float] | None, factor: float) -> float:
    """How likely ratios as large as `after` would be if the truth were `factor` (times what `before` shows).  before:
    None where the ratios are of the same rounds already."""
    shifted = np.log(after) - math.log(factor)
    if before is None:
        shifted = shifted[shifted != 0]
        if not shifted.size:
            return 1.0
        exact = len(np.unique(np.abs(shifted))) == len(shifted) and len(shifted) <= 50
        by_ranks = float(stats.wilcoxon(shifted, alternative="greater", method="exact" if exact else "approx").pvalue)
        return by_ranks if len(shifted) >= _ENOUGH_ROUNDS else min(1.0, 2 * min(by_ranks, _by_size(shifted)))
    reference = np.log(before)
    distinct = len(np.unique(np.concatenate([shifted, reference]))) == len(shifted) + len(reference)
    exact = distinct and len(shifted) * len(reference) <= 2500
    return float(stats.mannwhitneyu(shifted, reference, alternative="greater",
                                    method="exact" if exact else "asymptotic").pvalue)


def chance_of_mean(factors: Sequence[float], factor: float) -> float:
    """The same for the geometric mean of the changes of many cells."""
    if len(factors) >= _ENOUGH_CELLS:
        return chance(factors, None, factor)
    return _by_size(np.log(factors) - math.log(factor))


def _by_size(shifted: np.ndarray) -> float:
    if np.ptp(shifted) < 1e-12:
        return 0.0 if shifted[0] > 0 else 1.0
    return float(stats.ttest_1samp(shifted, 0, alternative="greater").pvalue)


def is_shown(chances: Sequence[float], level: float = FALSE_ALARMS / 2) -> list[bool]:
    """Benjamini and Hochberg: which of many findings may be believed together."""
    if not chances:
        return []
    return [bool(adjusted <= level) for adjusted in stats.false_discovery_control(chances, method="bh")]


def scatter(after: Sequence[float], before: Sequence[float] | None) -> float:
    """Of the logarithm of one round's ratio, as a standard deviation that outliers do not move."""
    found = [stats.median_abs_deviation(np.log(ratios), scale="normal") for ratios in (after, before) if ratios is not None]
    return float(np.mean(found))


def rounds_needed(spread: float, threshold: float, comparisons: int, paired: bool) -> int:
    """Rounds (of each campaign) in which a change of one cell by the threshold is found in all but MISSED of campaigns,
    among so many comparisons."""
    level = FALSE_ALARMS / 2 / max(comparisons, 1)
    distance = math.log(boundary(threshold))
    each = (stats.norm.isf(level) + stats.norm.isf(MISSED)) * spread / distance
    rounds = math.ceil(min(each ** 2 * _RESERVE * (1 if paired else 2), _MOST_ROUNDS))
    return max(rounds, _fewest(level, paired))


@cache
def _fewest(level: float, paired: bool) -> int:
    """Below, ratios that are all on one side, but for that of one disturbed round, are not rare enough."""
    rounds = 5
    while True:
        steps = np.linspace(0, 0.01, rounds)
        after = np.exp(np.where(np.arange(rounds) < 1, -9, 1) + steps)
        if chance(after, None if paired else np.exp(steps / 3), 1.0) <= level:
            return rounds
        rounds += 1
