"""The statistics behind the verdicts."""

import pytest
from hmalloc_lab.ratios import Ratio, paired, spread

DRIFTING = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0]


@pytest.mark.parametrize("values, relative", [([1, 2, 3, 4, 5], 1 / 3), ([0, 0], 0), ([7], 0)])
def test_spread_is_half_the_interquartile_range_of_the_median(values, relative):
    assert spread(values).relative == relative
    assert spread([1, 2, 3, 4, 5]).median == 3


@pytest.mark.parametrize("ours, reference, verdict", [
    ([5.0] * 8, [5.0] * 8, "not shown"),
    ([0.7, 1.2, 0.9, 1.3, 0.8, 1.1], [1.0] * 6, "not shown"),
    # It is the order of pairs that matters, not the drift.
    ([value * 1.1 for value in DRIFTING], DRIFTING, "10% more")])
def test_pairs(ours, reference, verdict):
    assert paired(ours, reference).verdict == verdict


def test_a_constant_ratio_is_certain():
    assert paired([value / 2 for value in DRIFTING], DRIFTING) == Ratio(0.5, 0.5, 0.5)


def test_nothing_measured_is_no_ratio():
    assert paired([0.0, 1.0], [0.0, 1.0]) is None


@pytest.mark.parametrize("ratio, verdict", [
    ((0.62, 0.21, 1.07), "not shown"), ((0.62, 0.21, 0.99), "38% less"), ((0.5, 0.5, 0.5), "50% less"),
    ((2.5, 2.4, 2.6), "2.5 times"), ((1.004, 1.003, 1.005), "<1% more"), ((0.5, None, None), "too few runs")])
def test_words(ratio, verdict):
    assert Ratio(*ratio).verdict == verdict
