"""Numbers and colours of the report."""

import pytest
from hmalloc_lab.page import formats, palette


@pytest.mark.parametrize("value, text", [(1234.5, "1,234"), (123.4, "123"), (12.0, "12.0"), (1.234, "1.23"),
                                         (0.01234, "0.0123"), (0, "0")])
def test_three_digits(value, text):
    assert formats.significant(value) == text


@pytest.mark.parametrize("value, metric, text", [(12.34, "ns_per_op", "12.3 ns"), (1234, "ns_per_op", "1.23 µs"),
                                                 (500, "vm_hwm_kb", "500 KB"), (2048, "vm_hwm_kb", "2.00 MB"),
                                                 (1.2, "footprint", "1.20 resident/live")])
def test_quantities_have_their_unit(value, metric, text):
    assert formats.quantity(value, metric) == text


def test_allocators_have_a_look_of_their_own(results):
    looks = palette.looks(results.allocators.values())
    assert len({look.light for look in looks.values()}) == len({look.dark for look in looks.values()}) == len(looks)
