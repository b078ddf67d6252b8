"""What docs/pdes-python.md shows is true."""

import re
from pathlib import Path

import hmalloc_pdes as pdes

DOCS = Path(__file__).resolve().parents[3] / "docs"
BLOCKS = re.findall(r"```python\n(.*?)```", (DOCS / "pdes-python.md").read_text(), re.S)


def test_the_first_model_has_the_digest_of_the_tutorial_in_cxx():
    names = {}
    exec(BLOCKS[0], names)
    [digest] = set(re.findall(r"digest +(0x\w{16})", (DOCS / "pdes.md").read_text()))
    assert f"{names['result'].digest:#018x}" == digest


def test_the_example_of_processes():
    [block] = [block for block in BLOCKS if "Processes" in block]
    names = {"pdes": pdes}
    exec(block, names)

    @pdes.model(end=50)
    def shop(simulation):
        simulation.add(names["Shop"], 1)

    assert shop.run().events > 20
