"""How old the peers are, and whether their projects have released something newer."""

import shutil
import subprocess
import sys

import pytest
from conftest import ROOT
from hmalloc_lab.bench import releases

sys.path.insert(0, str(ROOT / "bench"))
import older_glibc  # noqa: E402


@pytest.mark.parametrize("name, version, said", [
    ("mimalloc3", "3.6.0", "3.6.0, 2026-10"),
    ("jemalloc", "5.3.0-1 (package)", "5.3.0-1 (package), 2022-05, upstream is at 5.3.1"),
    ("rpmalloc", "1.4.3 (b097fd0)", "1.4.3 (b097fd0), age unknown, upstream is at 2.0.1"),
    ("rpmalloc", "2.0.1 (Debian 2.0.1-1)", "2.0.1 (Debian 2.0.1-1), before 2026-09"),
    ("mimalloc2", "2.10.0", "2.10.0, age unknown"),  # newer than 2.5.2, not older
    ("snmalloc", "snmalloc-sys 0.7.6", "snmalloc-sys 0.7.6, age unknown"), ("mine", "unknown", "unknown, age unknown")])
def test_a_version_has_its_age_and_what_came_since(name, version, said):
    assert releases.dated(name, version) == said


@pytest.fixture
def newer(tmp_path):
    """A library that asks for strtol by its new name, of a version of glibc that is not there."""
    (tmp_path / "libnew.c").write_text("long __isoc23_strtol(const char* a, char** b, int c) { (void)a; (void)b; return c; }\n"
                                       "int other_new(void) { return 1; }\nint getpid(void) { return 1; }\n")
    (tmp_path / "map").write_text("GLIBC_2.2.5 { getpid; };\nGLIBC_2.99 { __isoc23_strtol; other_new; } GLIBC_2.2.5;\n")
    (tmp_path / "libuser.c").write_text("long __isoc23_strtol(const char*, char**, int);\nint other_new(void);\n"
                                        "int getpid(void);\n"
                                        "long number(void) { return getpid() ? __isoc23_strtol(\"42\", 0, 10) : 0; }\n"
                                        "#ifdef MORE\nint more(void) { return other_new(); }\n#endif\n")

    def make(*options):
        new, user = tmp_path / "libc.so.6", tmp_path / "libuser.so"
        subprocess.run(["gcc", "-shared", "-fPIC", "-Wl,-soname,libc.so.6", f"-Wl,--version-script={tmp_path}/map",
                        tmp_path / "libnew.c", "-o", new], check=True)
        subprocess.run(["gcc", "-shared", "-fPIC", *options, tmp_path / "libuser.c", new, "-o", user], check=True)
        return user

    return make


def number(library) -> subprocess.CompletedProcess:
    return subprocess.run(["/usr/bin/python3", "-c", f"import ctypes; print(ctypes.CDLL('{library}').number())"],
                          capture_output=True, text=True, check=False)


@pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc")
def test_a_library_of_a_newer_glibc_is_made_to_load(newer):
    library = newer()
    assert "GLIBC_2.99' not found" in number(library).stderr
    assert older_glibc.let_load(library, (2, 36)) == ["__isoc23_strtol"]
    done = number(library)
    assert (done.stdout, done.stderr) == ("42\n", "")
    assert older_glibc.let_load(library, (2, 36)) == []


def test_what_has_no_older_name_is_refused(newer):
    library = newer("-DMORE")
    before = library.read_bytes()
    with pytest.raises(older_glibc.TooNew, match=r"libuser.so needs other_new of a newer glibc"):
        older_glibc.let_load(library, (2, 36))
    assert library.read_bytes() == before
