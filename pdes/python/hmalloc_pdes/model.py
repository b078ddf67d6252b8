"""A model: a function that says which LPs there are."""

import contextlib
import functools
import inspect

from . import checkpoints
from .errors import Error
from .options import NAMES as OPTIONS
from .run import Run, Simulation

_OF_RUN = ("progress", "plain", "outside", "replay", "checkpoint", "checkpoint_every", "resume")


class Model:
    """A decorated function; its parameters, which all have defaults, are the model's."""

    def __init__(self, build, defaults):
        functools.update_wrapper(self, build)
        self._build, self.defaults = build, defaults
        _, *parameters = inspect.signature(build).parameters.values()
        self.parameters = {parameter.name: parameter.default for parameter in parameters}
        for name, default in self.parameters.items():
            if default is inspect.Parameter.empty:
                raise Error(f"model {self.__name__}: parameter {name} has no default")
            if name in OPTIONS or name in _OF_RUN:
                raise Error(f"model {self.__name__}: parameter {name} has the name of an option of the engine")
        for name, default in defaults.items():
            if name not in OPTIONS:
                raise Error(f"model {self.__name__}: there is no option '{name}'")
            for asked in _asked(default):
                if asked not in self.parameters:
                    raise Error(f"model {self.__name__}: {name} follows from {asked}, which is no parameter")

    def _sorted(self, given):
        """Parameters and options, both with the defaults."""
        for name in given:
            if name not in self.parameters and name not in OPTIONS:
                raise Error(f"model {self.__name__} has no parameter '{name}', nor is that an option of the engine")
        parameters = self.parameters | {name: value for name, value in given.items() if name in self.parameters}
        options = self.defaults | {name: value for name, value in given.items() if name in OPTIONS}
        for name, value in options.items():
            if callable(value):
                options[name] = value(**{asked: parameters[asked] for asked in _asked(value)})
        return parameters, options

    def options_of(self, given):
        """The engine's, as far as the model or who runs it has said what they are."""
        return self._sorted({name: value for name, value in given.items() if name in self.parameters or name in OPTIONS})[1]

    def check(self, given):
        """Raises Error for a name that is not the model's nor the engine's."""
        self._sorted(given)

    def prepare(self, plain=False, **given):
        """What a run starts with: the LPs are known, and their handlers compiled."""
        parameters, options = self._sorted(given)
        simulation = Simulation(options)
        self._build(simulation, **parameters)
        return Run(simulation, plain), parameters, options

    def run(self, *, progress=False, plain=False, outside=None, replay=(), checkpoint=None, checkpoint_every=0, resume=None,
            _watch=None, **given):
        """Runs it.  Names are those of the model's parameters and of the engine's options.

        progress: True shows a bar; or a function of (wall_s, now, events, pending, bytes), that may return "save" or "stop".
        plain: compiles nothing, to debug handlers.
        outside: an Outside, by which other threads give events to the run while it keeps a pace.
        replay: what came from outside of another run, its `injected`, comes at the same times again.
        checkpoint: a file that the run is saved in when it is stopped, on SIGUSR1, and every `checkpoint_every` seconds.
        resume: such a file, from which the run goes on.
        Of several ranks (`mpirun -n 4 python3 FILE`) each has to call it; the first gets the result, the others None.
        """
        with outside.of_one_run() if outside is not None else contextlib.nullcontext():
            run, parameters, options = self.prepare(plain, **given)
            saving = checkpoints.options(run, self.__name__, parameters, checkpoint, checkpoint_every, resume)
            with _Bar(options.get("end", 0)) if progress is True else contextlib.nullcontext(progress or None) as told:
                result = run(options, told, outside, replay, saving, _watch)
        if result is not None:
            result.parameters.update(parameters)
        return result


def _asked(default):
    """The parameters of the model that an option follows from: `lookahead=lambda drive: drive`."""
    return inspect.signature(default).parameters if callable(default) else ()


class _Bar:
    def __init__(self, end):
        from tqdm.auto import tqdm

        form = "{percentage:3.0f} %|{bar}| {n:.6g} of {total:.6g}, {remaining} left{postfix}"
        self._bar = tqdm(total=end, bar_format=form)

    def __call__(self, wall_s, now, events, pending, _bytes):
        self._bar.update(now - self._bar.n)
        self._bar.set_postfix_str(f"{events / wall_s / 1e6:.3g} M events/s" if wall_s else "")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._bar.close()


def model(build=None, **defaults):
    """Declares a model: `@model(end=80, lookahead=0.1)` above `def phold(simulation, lps=8192, remote=0.25)`."""
    return Model(build, defaults) if build is not None else lambda function: Model(function, defaults)
