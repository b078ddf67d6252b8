"""Statistics as machines read them: OpenMetrics, JSON by its schema, files that a collector reads, and servers that never end."""

import json
import os
import resource
import signal
import subprocess
import time

import pytest
from conftest import ROOT

LIBRARY = ROOT / "build/release/libhmalloc.so"
SCHEMA = json.loads((ROOT / "docs/stats.schema.json").read_text())
IN_BYTES = {"allocated", "cached", "active", "resident", "retained", "mapped", "metadata", "peak_active", "bound", "purged"}
COUNTERS = {"purged", "cross_thread_frees", "refills", "flushes", "os_calls"}


@pytest.fixture(scope="session")
def server(hmalloc, build):
    return build("server.c", "server", "-fno-builtin")


@pytest.fixture(scope="session")
def nothing(hmalloc, build):
    return build("nothing.c", "nothing")


@pytest.fixture(scope="session")
def forms(hmalloc, build, tmp_path_factory):
    """The JSON document and the OpenMetrics text of one moment, of a program with an odd name."""
    folder = tmp_path_factory.mktemp("forms")
    odd = folder / 'a "name"\\ with \u00e4\n\r'
    build("forms.c", "forms", "-pthread", "-fno-builtin").rename(odd)
    subprocess.run([odd, "json", "metrics"], cwd=folder, env={"LD_PRELOAD": str(LIBRARY)}, check=True)
    return json.loads((folder / "json").read_text()), (folder / "metrics").read_text()


def run(program, **environment):
    return subprocess.run([program], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=300,
                          env={"LD_PRELOAD": str(LIBRARY), **environment})


def wait_until(is_so):
    end = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_json_is_as_its_schema_says(forms):
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is of the laboratory's packages")
    found, _ = forms
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    jsonschema.Draft202012Validator(SCHEMA).validate(found)
    for spoiled in (found | {"schema": 2}, found | {"allocated": -1}, found | {"pid": "1"}, found | {"threads": [{}]},
                    {key: value for key, value in found.items() if key != "resident"}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.Draft202012Validator(SCHEMA).validate(spoiled)


def test_the_schema_knows_every_member(forms):
    found, _ = forms
    for value, schema in ((found, SCHEMA), *((each, SCHEMA["properties"][name]["items"])
                                             for name in ("classes", "threads") for each in found[name])):
        assert set(value) == set(schema["properties"]) == set(schema["required"])
    assert len(found["classes"]) > 20 and found["threads"]


def expected_of(document):
    """(name, label) -> value, by the rule that docs/observability.md has."""
    def name(key):
        return f"hmalloc_{key}{'_bytes' * (key in IN_BYTES)}{'_total' * (key in COUNTERS)}"

    wanted = {(name(key), None): value for key, value in document.items() if isinstance(value, int)
              and key not in ("schema", "pid")}
    wanted |= {(f"hmalloc_class_{key}", each["size"]): each[key] for each in document["classes"] for key in each if key != "size"}
    wanted |= {(name(key).replace("_", "_heap_", 1), each["heap"]): each[key] for each in document["threads"]
               for key in each if key not in ("heap", "live")}
    return wanted


def label_of(labels):
    value = labels.get("class", labels.get("heap"))
    return value and int(value)


def test_openmetrics_says_what_json_says(forms):
    openmetrics = pytest.importorskip("prometheus_client.openmetrics.parser", reason="it is of the laboratory's packages")
    document, text = forms
    families = list(openmetrics.text_string_to_metric_families(text))
    samples = [sample for family in families for sample in family.samples]
    assert {(each.name, label_of(each.labels)): each.value for each in samples} == expected_of(document)
    assert len(samples) == len(expected_of(document))
    for family in families:
        key = family.name.removeprefix("hmalloc_").removeprefix("heap_").removesuffix("_bytes")
        assert family.type == ("counter" if key in COUNTERS else "gauge") and family.documentation
        assert family.unit == "bytes" * family.name.endswith("_bytes")
    for each in samples:
        assert (each.labels["pid"], each.labels["program"]) == (str(document["pid"]), document["program"].replace("\r", "?"))
        assert set(each.labels) - {"class", "heap"} == {"pid", "program"}


def test_the_older_text_format_takes_it_too(forms):
    """As node_exporter reads files: it knows counters and gauges, and of comments TYPE and HELP alone."""
    older = pytest.importorskip("prometheus_client.parser", reason="it is of the laboratory's packages")
    document, text = forms
    families = list(older.text_string_to_metric_families(text))
    assert {family.type for family in families} <= {"counter", "gauge", "unknown"}
    # prometheus_client calls a counter by its name in full in any case.
    samples = {(each.name, label_of(each.labels)): each.value for family in families for each in family.samples}
    assert samples == expected_of(document)
    types = {line.split()[3] for line in text.splitlines() if line.startswith("# TYPE")}
    assert types == {"counter", "gauge"}


def test_a_metrics_file_is_replaced_at_exit(nothing, tmp_path):
    name = tmp_path / "it.prom"
    name.write_text("old")
    for _ in range(2):  # whatever form is asked for
        result = run(nothing, HMALLOC_SHOW_STATS="json", HMALLOC_STATS_FILE=str(name))
        assert (result.returncode, result.stderr) == (0, "")
        assert name.read_text().startswith("# TYPE hmalloc_") and name.read_text().count("# EOF\n") == 1
    assert os.listdir(tmp_path) == ["it.prom"]


def test_a_metrics_file_for_each_process(nothing, tmp_path):
    for _ in range(2):
        run(nothing, HMALLOC_SHOW_STATS="1", HMALLOC_STATS_FILE=str(tmp_path / "a%%b.%p.prom"))
    assert len(list(tmp_path.glob("a%b.*.prom"))) == 2


@pytest.mark.parametrize("name", ["/no/such/it.prom", "/proc/it.prom", "/tmp/" + "x" * 245 + ".prom", "/tmp/" + "x" * 240 + ".prom"])
def test_a_metrics_file_that_cannot_be_written_is_one_line(nothing, name):
    result = run(nothing, HMALLOC_SHOW_STATS="1", HMALLOC_STATS_FILE=name)
    line = f"cannot write HMALLOC_STATS_FILE={name}" if len(name) < 256 else "HMALLOC_STATS_FILE is too long; ignored"
    assert result.returncode == 0 and result.stderr.startswith(f"hmalloc: {line}\n")
    assert len(name) >= 256 or result.stderr.count("\n") == 1
    assert not os.path.lexists(name)


def test_a_full_disk_leaves_the_file_as_it_was(nothing, tmp_path):
    name = tmp_path / "it.prom"
    name.write_text("old")

    def almost_full():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))

    result = subprocess.run([nothing], capture_output=True, text=True, preexec_fn=almost_full, restore_signals=False, env={
        "LD_PRELOAD": str(LIBRARY), "HMALLOC_SHOW_STATS": "1", "HMALLOC_STATS_FILE": str(name)})
    assert (result.returncode, result.stderr) == (0, f"hmalloc: cannot write HMALLOC_STATS_FILE={name}\n")
    assert name.read_text() == "old" and os.listdir(tmp_path) == ["it.prom"]


@pytest.mark.parametrize("target, said", [("/dev/null", ""), ("/dev/full", "hmalloc: cannot write HMALLOC_STATS_FILE={}\n"),
                                          ("/proc", "hmalloc: cannot write HMALLOC_STATS_FILE={}\n")])
def test_what_is_no_file_is_not_replaced_by_one(nothing, tmp_path, target, said):
    name = tmp_path / "it.prom"
    name.symlink_to(target)
    result = run(nothing, HMALLOC_SHOW_STATS="1", HMALLOC_STATS_FILE=str(name))
    assert (result.returncode, result.stderr) == (0, said.format(name))
    assert os.readlink(name) == target


def begin(server, *words, **environment):
    return subprocess.Popen([server, *words], stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            env={"LD_PRELOAD": str(LIBRARY), **environment})


def end_of(process):
    process.stdin.close()
    text = process.stderr.read()
    assert process.wait(timeout=300) == 0
    return text


def test_an_interval(server, tmp_path):
    name = tmp_path / "all"
    with begin(server, HMALLOC_SHOW_STATS="json", HMALLOC_STATS_INTERVAL="20ms", HMALLOC_STATS_FILE=str(name)) as process:
        wait_until(lambda: name.exists() and name.read_text().count("\n") >= 4)
        assert end_of(process) == ""
    found = [json.loads(line) for line in name.read_text().splitlines()]
    assert {each["pid"] for each in found} == {process.pid} and found[0]["os_calls"] <= found[-1]["os_calls"]


def test_without_a_file_it_goes_to_the_standard_error(server):
    with begin(server, HMALLOC_SHOW_STATS="json", HMALLOC_STATS_INTERVAL="20ms") as process:
        for _ in range(2):
            assert json.loads(process.stderr.readline())["pid"] == process.pid
        end_of(process)


def test_who_makes_the_trigger_gets_statistics(server, tmp_path):
    name, pattern = tmp_path / "it.prom", tmp_path / "now.%p"
    with begin(server, HMALLOC_STATS_FILE=str(name), HMALLOC_STATS_TRIGGER=str(pattern)) as process:
        trigger = tmp_path / f"now.{process.pid}"
        for _ in range(2):
            assert not name.exists()
            trigger.touch()
            wait_until(lambda: not trigger.exists())
            assert name.read_text().endswith("\n# EOF\n")
            name.unlink()
        assert end_of(process) == ""
    assert not name.exists(), "the end was not asked for"


def test_without_descriptors(server, tmp_path):
    name = tmp_path / "it.prom"
    with begin(server, "closed", HMALLOC_STATS_INTERVAL="20ms", HMALLOC_STATS_FILE=str(name)) as process:
        wait_until(name.exists)
        process.stdin.close()
        assert process.wait(timeout=300) == 0
    assert name.read_text().endswith("\n# EOF\n")


@pytest.mark.parametrize("name", ["nowhere/it.prom", "pipe", "pipe.prom"])
def test_a_trigger_stays_where_nothing_can_be_written(server, tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    os.mkfifo("pipe.prom")  # nobody reads, and nobody waits
    (tmp_path / "now").touch()
    with begin(server, HMALLOC_STATS_FILE=name, HMALLOC_STATS_TRIGGER="now") as process:
        assert process.stderr.readline() == f"hmalloc: cannot write HMALLOC_STATS_FILE={name}\n"
        time.sleep(0.3)
        assert end_of(process) == "" and (tmp_path / "now").exists()


def test_a_trigger_that_stays_is_answered_once(server, tmp_path):
    (tmp_path / "folder").mkdir()
    with begin(server, HMALLOC_STATS_FILE=str(tmp_path / "it"), HMALLOC_STATS_TRIGGER=str(tmp_path / "folder")) as process:
        assert process.stderr.readline() == f"hmalloc: cannot write HMALLOC_STATS_TRIGGER={tmp_path}/folder\n"
        time.sleep(0.3)
        assert end_of(process) == ""
    assert (tmp_path / "it").read_text().count("statistics of process") == 1


@pytest.mark.parametrize("environment, message", [
    ({"HMALLOC_STATS_INTERVAL": "10"}, "hmalloc: HMALLOC_STATS_INTERVAL=10 is not understood; ignored\n"),
    ({"HMALLOC_STATS_INTERVAL": ""}, "hmalloc: HMALLOC_STATS_INTERVAL= is not understood; ignored\n"),
    ({"HMALLOC_STATS_TRIGGER": "", "HMALLOC_STATS_FILE": ""}, ""),  # as if they were not there
    ({"HMALLOC_STATS_TRIGGER": "x" * 256}, "hmalloc: HMALLOC_STATS_TRIGGER is too long; ignored\n"),
    ({"HMALLOC_SHOW_STATS": "xml"}, "hmalloc: HMALLOC_SHOW_STATS=xml is not understood; ignored\n"),
])
def test_what_is_wrong_is_one_line(nothing, environment, message):
    result = run(nothing, **environment)
    assert (result.returncode, result.stderr) == (0, message)
