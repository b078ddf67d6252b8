"""Many runs of a model: all combinations of some values, over several processes, kept in a file from which a later call
goes on."""

import contextlib
import itertools
import multiprocessing
import os
import signal
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from numbers import Number
from pathlib import Path

import numpy as np

from . import library
from .errors import Error

_model = None  # in a worker: what it runs, inherited at its fork


def _begin(model):
    global _model
    _model = model
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who has called sweep hears of it, and ends the workers


def _one(point):
    """A row of the result.  A run that fails has a row, too, and is tried again by the next call."""
    try:
        return _model.run(**point).row() | {"error": ""}
    except Error as error:
        return dict(point) | {"error": str(error)}


def sweep(model, grid, *, file=None, processes=None, progress=True, **fixed):
    """Runs a model with all combinations of `grid`, a dictionary of lists: of parameters of the model, of options of the
    engine (several seeds, say).  Returns a DataFrame, a row for each run in the order of the grid.

    file: a name that ends in .csv, or in .parquet (that needs pyarrow).  It has all runs that are done at any time, and
    those that it has already are not done again.  It does not know whether the model has changed meanwhile.
    """
    points = [fixed | dict(zip(grid, values)) for values in itertools.product(*grid.values())]
    if not points:
        raise Error("there is nothing to run: a list of values is empty")
    if library.call.has_ranks():
        raise Error("a sweep has processes of its own, and takes no part in several ranks: start it without mpirun")
    for point in points:
        model.check(point)
    path = Path(file) if file else None
    rows = _read(path, points) if path else {}
    left = [point for point in points if _key(point) not in rows]
    for point, row in _run(model, left, processes, progress, len(points)):
        rows[_key(point)] = row
        if path:
            _write(path, rows)
    return _frame([rows[_key(point)] for point in points])


def _key(row, names=None):
    return tuple((name, _in_file(row[name])) for name in sorted(row if names is None else names))


def _in_file(value):
    """What a file makes of a value: None of what is no number, of a list its text."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if value is None or (isinstance(value, Number) and value != value):
        return None
    return value if isinstance(value, (str, Number, np.generic)) else str(value)


def _run(model, points, processes, progress, total):
    from tqdm.auto import tqdm

    if not points:
        return
    for point in points:  # compiled once, here: workers are forks
        with contextlib.suppress(Error):  # which is in that point's row
            model.prepare(**point)
            break
    context = multiprocessing.get_context("fork")
    processes = min(processes or len(os.sched_getaffinity(0)), len(points))
    others = set(multiprocessing.active_children())
    with ProcessPoolExecutor(processes, context, _begin, (model,)) as pool, \
            tqdm(total=total, initial=total - len(points), unit="run", disable=not progress) as bar:
        try:
            runs = {pool.submit(_one, point): point for point in points}
            for done in as_completed(runs):
                yield runs[done], done.result()
                bar.update()
        except BrokenProcessPool:
            raise Error("a process of the sweep was killed; what is done is in the file, if there is one") from None
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for worker in set(multiprocessing.active_children()) - others:
                worker.terminate()
            raise


def _frame(rows):
    import pandas

    return pandas.DataFrame(rows).drop(columns="error") if not any(row["error"] for row in rows) else pandas.DataFrame(rows)


def _read(path, points):
    import pandas

    if not path.exists():
        return {}
    [point, *_] = points
    exactly = {"float_precision": "round_trip"} if int(pandas.__version__.partition(".")[0]) < 3 else {}
    # A word is a word, even if it looks like a number or like nothing.
    exactly["converters"] = {name: str for name in point if any(isinstance(of[name], str) for of in points)}
    frame = pandas.read_parquet(path) if path.suffix == ".parquet" else pandas.read_csv(path, **exactly)
    missing = [name for name in (*point, "digest", "error") if name not in frame]
    if missing:
        raise Error(f"{path} is of another sweep: it has no column '{missing[0]}'")
    frame["error"] = frame["error"].astype(object).fillna("")
    rows = frame[frame["error"] == ""].to_dict("records")
    return {_key(row, point): row for row in rows}


def _write(path, rows):
    """Under another name first: whoever reads the file, or goes on after a crash, has a whole one."""
    import pandas

    frame, part = pandas.DataFrame(list(rows.values())), path.with_name(path.name + ".part")
    if path.suffix == ".parquet":
        frame.to_parquet(part)
    else:
        frame.to_csv(part, index=False)
    os.replace(part, path)
