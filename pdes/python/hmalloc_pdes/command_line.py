"""A model as a program: `python3 -m hmalloc_pdes FILE.py` has its parameters and the engine's options on the command line,
as the programs of models in C++ have theirs."""

import argparse
import ast
import contextlib
import importlib.util
import os
import re
import sys
import traceback
import warnings
from pathlib import Path

import numpy as np

from . import library, options, watching
from .errors import Error
from .model import Model

FAILED, CANNOT_START, INTERRUPTED = 1, 2, 130
_SECONDS = {"ms": 1e-3, "min": 60, "h": 3600, "s": 1}
_BYTES = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
_ELSEWHERE = "the run failed on another rank"  # which says why


class Parser(argparse.ArgumentParser):
    """What is wrong is one line."""

    def error(self, message):
        raise Error(message)


# ---- The file and the model in it.


def models_in(path):
    """Those that the file declares, by name.  It is loaded as a module: what stands under `if __name__ == "__main__"` is not
    run."""
    spec = importlib.util.spec_from_file_location(Path(path).stem, path)
    if spec is None or not Path(path).is_file():
        raise Error(f"{path}: no such file of Python")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # for pickle, which looks for classes by their module
    sys.path.insert(0, str(Path(path).resolve().parent))
    spec.loader.exec_module(module)
    return {value.__name__: value for value in vars(module).values()
            if isinstance(value, Model) and value.__module__ == spec.name}


def chosen(path, models, name):
    if not models:
        raise Error(f"{path} has no model: a function with @hmalloc_pdes.model")
    if name is None and len(models) > 1:
        raise Error(f"{path} has several models, of which --model chooses one: {', '.join(models)}")
    if name is not None and name not in models:
        raise Error(f"{path} has no model {name}; it has {', '.join(models)}")
    return models[name] if name is not None else next(iter(models.values()))


# ---- Values.


def _read(kind, what):
    def read(text):
        try:
            return kind(text)
        except (ValueError, SyntaxError, AttributeError):
            raise argparse.ArgumentTypeError(f"'{text}' is not {what}") from None
    return read


def _seconds(text):
    unit = next((unit for unit in _SECONDS if text.endswith(unit)), "")
    return float(text.removesuffix(unit)) * _SECONDS.get(unit, 1)


def _bytes(text):
    digits, unit = re.fullmatch(r"(\d+)\s*([kmgt]?)(?:i?b)?", text.lower()).groups()
    return int(digits) * _BYTES[unit]


_KINDS = {"time": ("TIME", _read(float, "a number")), "number": ("SPEED", _read(float, "a number")),
          "count": ("N", _read(int, "a whole number")), "size": ("SIZE", _read(_bytes, "a size like 512M or 2G")),
          "seconds": ("TIME", _read(_seconds, "a time like 10s, 500ms, 5min or 2h")), "file": ("FILE", str)}


def _for_help(text):
    """Where argparse fills in what stands behind a per cent sign."""
    return text.replace("%", "%%")


def _joined(words):
    """A number below 0 is a value, also one such as -1e-3, which argparse takes for an option."""
    joined = []
    for word in words:
        if joined and re.match(r"-\.?\d", word) and re.fullmatch("--[^=]+", joined[-1]):
            joined[-1] += f"={word}"
        else:
            joined.append(word)
    return joined


def _add_option(group, option, default):
    name = f"--{option.word}"
    if option.kind == "flag":
        group.add_argument(name, dest=option.name, action="store_true", help=option.help)
        return
    number = f"{default:g}" if isinstance(default, float) else str(default)
    shown = option.help if default is None else f"{option.help} ({_for_help(number)})"
    if isinstance(option.kind, tuple):
        group.add_argument(name, dest=option.name, choices=option.kind, metavar="|".join(option.kind), help=shown)
    else:
        unit, read = _KINDS[option.kind]
        group.add_argument(name, dest=option.name, type=read, metavar=unit, help=shown)


def _add_parameter(group, name, default):
    """By what its default is."""
    word, shown = f"--{name.replace('_', '-')}", f"({_for_help(f'{default!r:.60}')})"
    if isinstance(default, (bool, np.bool_)):
        group.add_argument(word, dest=name, action=argparse.BooleanOptionalAction, help=shown)
    elif isinstance(default, (int, np.integer)):
        group.add_argument(word, dest=name, type=_read(int, "a whole number"), metavar="N", help=shown)
    elif isinstance(default, (float, np.floating)):
        group.add_argument(word, dest=name, type=_read(float, "a number"), metavar="NUMBER", help=shown)
    elif isinstance(default, str):
        group.add_argument(word, dest=name, metavar="TEXT", help=shown)
    else:
        group.add_argument(word, dest=name, type=_read(ast.literal_eval, "a value of Python's"), metavar="VALUE", help=shown)


def parser_of(path, model):
    parser = Parser(f"python3 -m hmalloc_pdes {path}", usage="%(prog)s [OPTIONS]", allow_abbrev=False, add_help=False,
                    argument_default=argparse.SUPPRESS, description=(model.__doc__ or f"the model {model.__name__}").strip(),
                    formatter_class=lambda prog: argparse.HelpFormatter(prog, max_help_position=36, width=120))
    own = parser.add_argument_group("The model's own")
    standard = model.options_of({})
    for title, those in (("Simulation", options.SIMULATION),
                         ("How it is run (changes no result)", options.ENGINE + options.CHECKPOINTS)):
        group = parser.add_argument_group(title)
        for option in those:
            _add_option(group, option, standard.get(option.name, option.default))
    output = parser.add_argument_group("Output")
    output.add_argument("--model", metavar="NAME", help="which, if the file has several")
    output.add_argument("--plain", action="store_true", help="compile nothing, to debug handlers")
    output.add_argument("--json", action="store_true",
                        help="the summary as one line of JSON, and nothing else on standard output")
    output.add_argument("--quiet", action="store_true", help="no summary for people, no live line")
    output.add_argument("--progress", choices=("auto", "on", "off", "json"), metavar="auto|on|off|json",
                        help="live line on a terminal; json: lines of JSON on standard error (auto)")
    output.add_argument("--series", metavar="FILE",
                        help="time series of the run, written as it goes: CSV, or JSON lines (.jsonl)")
    output.add_argument("--summary", metavar="FILE", help="the summary as JSON, in a file")
    for option in options.MEASURED:
        _add_option(output, option, standard.get(option.name, option.default))
    output.add_argument("-h", "--help", action="store_true", help="this text")
    for name, default in model.parameters.items():
        try:
            _add_parameter(own, name, default)
        except argparse.ArgumentError:
            raise Error(f"model {model.__name__}: parameter {name} has the name of an option of the command line") from None
    return parser


# ---- The run.


def say(name, text, code=0):
    """In one piece, as ranks speak at the same time."""
    sys.stderr.write(f"{name}: {text}\n")
    return code


class Watch:
    """Of a run: what goes where; of several ranks the first alone has any output."""

    def __init__(self, given, name, end, first):
        self._json, self._quiet = given.pop("json", False), given.pop("quiet", False)
        progress, series, summary = given.pop("progress", "auto"), given.pop("series", None), given.pop("summary", None)
        self._name, self._first, self._checkpoint, self._points = name, first, given.get("checkpoint"), watching.Points(end)
        self._lines = first and progress == "json"
        self.bar = first and (progress == "on" or (progress == "auto" and not self._quiet and sys.stderr.isatty()))
        self._series = watching.Series(series) if series is not None and first else None
        self._summary = watching.OutputFile("--summary", summary) if summary is not None and first else None
        self._signal, self._is_saved = None, True

    def see(self, at):
        if self._series or self._lines:
            self._record(self._points.of(at))

    def saved(self, now):
        if self._first:
            say(self._name, f"saved at time {now:.10g} in {self._checkpoint}")

    def stopped_by(self, number, saved):
        self._signal, self._is_saved = number, saved

    def _record(self, point):
        if self._series:
            self._series.add(point)
        if self._lines:
            with contextlib.suppress(OSError):  # nobody listens any more
                print(watching.as_json(point), file=sys.stderr, flush=True)

    def finish(self, result):
        """The exit code."""
        if self._first and result is not None:
            self._report(result)
        if self._signal is None:
            return 0
        if self._checkpoint and not self._is_saved:
            return FAILED
        if self._checkpoint and self._first:
            say(self._name, f"stopped and saved: --resume {self._checkpoint} goes on from there")
        return 128 + self._signal

    def _report(self, result):
        try:
            if self._json:
                print(watching.as_json(watching.summary(self._name, result)))
            elif not self._quiet:
                print(f"{self._name}: {result}")
            sys.stdout.flush()
        except OSError:
            sys.stdout = None  # which Python would write to at its end
            raise Error("standard output cannot be written") from None
        if self._series or self._lines:
            self._record(self._points.last(result))
        if self._summary:
            self._summary.line(watching.as_json(watching.summary(self._name, result)))
        for file in filter(None, (self._series, self._summary)):
            file.check()


def _is_first():
    """Of several ranks; before MPI has been started, only the launcher's word says which this is."""
    names = ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK")
    return not library.call.has_ranks() or next((os.environ[name] for name in names if name in os.environ), "0") == "0"


def _own_traceback(error, path):
    """Of a file that cannot be loaded: from its first line on, without what loads it."""
    where = error.__traceback__
    while where is not None and where.tb_frame.f_code.co_filename != str(path):
        where = where.tb_next
    return "".join(traceback.format_exception(type(error), error, where)).rstrip("\n")


def main(words):
    if not words or words[0] in ("-h", "--help"):
        print("usage: python3 -m hmalloc_pdes FILE.py [--model NAME] [OPTIONS]\n\n"
              "Runs the model in a file of Python; FILE.py --help lists its parameters and the engine's options.")
        return 0 if words else CANNOT_START
    path, *words = _joined(words)
    name, first = Path(path).stem, _is_first()
    refused = say if first else lambda _name, _text, code: code  # what all ranks find out is said once
    warnings.showwarning = lambda message, *_, **__: refused(name, message, 0)
    try:
        found = models_in(path)
    except Error as error:
        return refused(name, error, CANNOT_START)
    except Exception as error:
        return refused(name, f"{path} cannot be loaded\n{_own_traceback(error, path)}", CANNOT_START)
    try:
        wanted, _ = _of_choice().parse_known_args(words)
        model = chosen(path, found, wanted.model)
        parser = parser_of(path, model)
        given = vars(parser.parse_args(words))
        if given.pop("help", False):
            if first:
                print(parser.format_help(), end="")
            return 0
        given.pop("model", None)
        name = model.__name__
        watch = Watch(given, name, model.options_of(given).get("end", 0.0), first)
    except Error as error:
        return refused(name, error, CANNOT_START)
    try:
        return watch.finish(model.run(progress=watch.bar, _watch=watch, **given))
    except Error as error:
        return FAILED if str(error) == _ELSEWHERE else say(name, error, FAILED)
    except KeyboardInterrupt:
        return INTERRUPTED


def _of_choice():
    """Only --model, which says what the others are."""
    parser = Parser(add_help=False, allow_abbrev=False)
    parser.add_argument("--model")
    return parser
