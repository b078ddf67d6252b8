"""Statistics as machines read them: OpenMetrics, and JSON by its schema."""

import json
import subprocess

import pytest
from conftest import ROOT

LIBRARY = ROOT / "build/release/libhmalloc.so"
SCHEMA = json.loads((ROOT / "docs/stats.schema.json").read_text())
IN_BYTES = {"allocated", "cached", "active", "resident", "retained", "mapped", "metadata", "peak_active", "bound", "purged"}
COUNTERS = {"purged", "cross_thread_frees", "refills", "flushes", "os_calls"}


@pytest.fixture(scope="session")
def forms(hmalloc, build, tmp_path_factory):
    """The JSON document and the OpenMetrics text of one moment, of a program with an odd name."""
    folder = tmp_path_factory.mktemp("forms")
    odd = folder / 'a "name"\\ with \u00e4\n\r'
    build("forms.c", "forms", "-pthread", "-fno-builtin").rename(odd)
    subprocess.run([odd, "json", "metrics"], cwd=folder, env={"LD_PRELOAD": str(LIBRARY)}, check=True)
    return json.loads((folder / "json").read_text()), (folder / "metrics").read_text()


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
