"""Which programs, and how each is run.

In a command {here} is bench/programs, {inputs} the folder of the made inputs, {work} an empty folder of the run's own, in
which the program also runs, and {size} how much there is to do.  Each was taken because it calls malloc often: from
250,000 times (git) and 400,000 times (the compilers) to 3,700,000 times (xsltproc) in a second of CPU time.
"""

from dataclasses import dataclass, field

_PYTHON = "/usr/bin/python3"  # a virtual environment's would be the laboratory's own
_BENCHMARKS = ("chaos deepcopy deltablue float go hexiom json_dumps json_loads nqueens raytrace regex_compile "
               "xml_etree").split()


@dataclass(frozen=True)
class Program:
    command: tuple[str, ...]
    size: int                       # of its input, as the laboratory runs it
    packages: str                   # that have it, in words
    needs: tuple[str, ...] = ()     # executables beside the command's first word
    inputs: tuple[str, ...] = ()    # of inputs.py, made before
    modules: tuple[str, ...] = ()   # of Python, from build/programs (bench/programs/requirements.lock)
    environment: dict[str, str] = field(default_factory=dict, hash=False)
    result: str = "result"          # pattern of the files in {work} that it writes beside what it prints
    point: dict = field(default_factory=dict, hash=False)  # of its cell

    @property
    def executables(self) -> tuple[str, ...]:
        return (self.command[0], *self.needs)


_COMPILER = ("-std=c++20", "-O{size}", "-frandom-seed=1", "-S", "-o", "out.s", "{here}/unit.cc")
_OWN_MALLOC = {"PYTHONMALLOC": "malloc", "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}

PROGRAMS = {
    "cargo": Program(("/usr/bin/cargo", "check", "--quiet", "--offline", "--jobs", "1", "--target-dir", "{work}",
                      "--manifest-path", "{inputs}/crates/Cargo.toml"), 1, "cargo and rustc of the distribution",
                     needs=("/usr/bin/rustc",), inputs=("crates",), result="debug/deps/*.rmeta",
                     environment={"RUSTC": "/usr/bin/rustc", "CARGO_HOME": "{inputs}/crates/home"}),
    "clang++": Program(("clang++", *_COMPILER), 0, "clang", result="out.s"),
    "duckdb": Program((_PYTHON, "{here}/queries.py", "{size}"), 120_000, "PyPI", modules=("duckdb",),
                      point={"threads": 2}),
    "g++": Program(("g++", *_COMPILER), 0, "g++", result="out.s"),
    "git": Program(("git", "-C", "{inputs}/repository-{size}", "log", "-p", "--stat", "--find-renames"), 1000, "git",
                   inputs=("repository",), environment={"HOME": "{work}", "GIT_CONFIG_NOSYSTEM": "1"}),
    "jq": Program(("jq", "-c", "-f", "{here}/report.jq", "{inputs}/records-{size}.json"), 60_000, "jq",
                  inputs=("records",)),
    "lua": Program(("lua5.4", "{here}/report.lua", "{inputs}/records-{size}.tsv"), 50_000, "lua5.4", inputs=("records",)),
    "node": Program(("node", "{here}/compress.js", "{inputs}/records-{size}.json"), 30_000, "nodejs", inputs=("records",)),
    "perl": Program(("perl", "{here}/report.pl", "{inputs}/records-{size}.tsv"), 60_000, "perl", inputs=("records",),
                    environment={"PERL_HASH_SEED": "0", "PERL_PERTURB_KEYS": "0"}),
    "python": Program((_PYTHON, "-B", "{here}/pyperf.py", "{size}", *_BENCHMARKS), 1, "PyPI", modules=("pyperformance",),
                      environment=_OWN_MALLOC),
    "sqlite3": Program(("sqlite3", "-init", "/dev/null", ":memory:", ".cd {inputs}/records-{size}",
                        ".read {here}/report.sql"), 40_000, "sqlite3", inputs=("records",)),
    "xsltproc": Program(("xsltproc", "{here}/report.xsl", "{inputs}/records-{size}.xml"), 60_000, "xsltproc",
                        inputs=("records",)),
    "yosys": Program(("yosys", "-q", "-p", "read_verilog {here}/chip.v; chparam -set WIDTH {size} unit; "
                      "synth -top unit -flatten; opt -full; write_verilog -noattr out.v"), 24, "yosys", result="out.v"),
}
