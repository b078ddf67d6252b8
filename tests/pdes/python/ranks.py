"""What test_ranks.py starts by mpirun: a model, options as JSON, and where the first rank puts what it got."""

import contextlib
import json
import os
import sys
from pathlib import Path

import hmalloc_pdes as pdes
import numpy as np
from colonies import Cell, Colony, colonies
from models import phold

_, _name, _options, _file = sys.argv
# A value that is to differ from rank to rank.
options = {name: int(os.environ["OMPI_COMM_WORLD_RANK"]) if value == "rank" else value
           for name, value in json.loads(_options).items()}
STATES = {"colonies": (Cell, Colony)}


def numbers(result):
    """A result, as far as the number of processes must not change it."""
    states = {lp.__name__: [frame.index.tolist(), frame.select_dtypes(np.number).to_numpy().tolist()]
              for lp in STATES.get(_name, ()) for frame in [result.states(lp)]}
    return {"digest": result.digest, "events": result.events, "by_type": result.events_by_type, "made": result.made,
            "statistics": result.frame().astype(str).to_dict(), "states": states}


# A run that fails does not keep the next one from being made.
for _ in range(options.pop("times", 1) - 1):
    with contextlib.suppress(pdes.Error):
        phold.run(**options)
try:
    _result = {"phold": phold, "colonies": colonies}[_name].run(**options)
    said = {"result": numbers(_result)} if _result is not None else None
except pdes.Error as error:
    said = {"error": str(error)}
if said is not None:
    Path(_file).write_text(json.dumps(said))
