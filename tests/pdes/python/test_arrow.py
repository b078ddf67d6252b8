"""Results and files of sweeps as Arrow has them: needs pyarrow."""

import hmalloc_pdes as pdes
import pandas
import pytest
from conftest import SMALL
from models import airport, phold
from test_sweeps import GRID, TINY


def test_parquet_and_arrow(tmp_path, monkeypatch):
    pytest.importorskip("pyarrow")
    file = tmp_path / "sweep.parquet"
    whole = pdes.sweep(phold, GRID, file=file, progress=False, **TINY)
    result = airport.run(**SMALL["airport"])
    table = result.arrow()
    assert phold.run(**SMALL["phold"]).arrow().num_rows == 0 and table.num_rows == 5
    assert dict(zip(table["statistic"].to_pylist(), table["value"].to_pylist())) == {
        name: statistic.value for name, statistic in result.statistics.items()}
    assert table.schema.field("count").type == "int64" and table["mean"].null_count == 3
    in_file, order = pandas.read_parquet(file), ["remote", "seed"]  # there in the order in which they were done
    pandas.testing.assert_frame_equal(in_file.sort_values(order, ignore_index=True), whole.assign(error="").sort_values(
        order, ignore_index=True), check_dtype=False)
    monkeypatch.setattr(type(phold), "run", None)
    assert (pdes.sweep(phold, GRID, file=file, progress=False, **TINY)["digest"] == whole["digest"]).all()
