"""The statistics behind the verdicts."""

from hmalloc_lab.ratios import Ratio, paired, spread


def test_spread_is_half_the_interquartile_range_of_the_median():
    assert spread([1, 2, 3, 4, 5]).median == 3
    assert spread([1, 2, 3, 4, 5]).relative == 1 / 3
    assert spread([0, 0]).relative == 0
    assert spread([7]).relative == 0


def test_between_equal_values_no_difference_is_shown():
    assert paired([5.0] * 8, [5.0] * 8).verdict == "not shown"


def test_a_constant_ratio_is_certain():
    ratio = paired([2.0, 4.0, 6.0, 8.0, 10.0, 12.0], [4.0, 8.0, 12.0, 16.0, 20.0, 24.0])
    assert (ratio.median, ratio.low, ratio.high, ratio.verdict) == (0.5, 0.5, 0.5, "50% less")


def test_scattered_pairs_show_no_difference():
    assert paired([0.7, 1.2, 0.9, 1.3, 0.8, 1.1], [1.0] * 6).verdict == "not shown"
    assert Ratio(0.62, 0.21, 1.07).verdict == "not shown"
    assert Ratio(0.62, 0.21, 0.99).verdict == "38% less"


def test_the_order_of_pairs_matters_not_the_drift():
    drifting = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0]
    assert paired([value * 1.1 for value in drifting], drifting).verdict == "10% more"


def test_nothing_measured_is_no_ratio():
    assert paired([0.0, 1.0], [0.0, 1.0]) is None


def test_words():
    assert Ratio(2.5, 2.4, 2.6).verdict == "2.5 times"
    assert Ratio(1.004, 1.003, 1.005).verdict == "<1% more"
    assert Ratio(0.5, None, None).verdict == "too few runs"
