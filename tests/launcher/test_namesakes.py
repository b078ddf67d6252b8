"""A program that was named by a path is that program, whatever else bears its name in PATH."""

import os
import subprocess

import pytest


def executable(path, program):
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(program.read_bytes())
    path.chmod(0o755)
    return path.parent


@pytest.fixture
def path_with_decoy(build, tmp_path):
    """A PATH whose first `prog` leaves a file when it is run, which no test may do.  Static: no loader keeps it from that."""
    marker = tmp_path / "marker"
    decoy = build("mark.c", "decoy", "-static", f'-DMARKER="{marker}"')
    path = f"{executable(tmp_path / 'decoys/prog', decoy)}:{os.environ['PATH']}"
    subprocess.run(["sh", "-c", "prog"], env={"PATH": path}, check=True)
    assert marker.exists(), "the decoy can be run and found out"
    marker.unlink()
    yield path
    assert not marker.exists()


@pytest.fixture
def folder_with_program(build, tmp_path):
    """A folder with a `prog` whose malloc is that of a library of its own."""
    library = build("own_malloc.c", "libnamesake.so", "-shared", "-fPIC", "-fno-builtin")
    program = build("touch.c", "prog-with-a-library", f"-L{library.parent}", f"-Wl,-rpath,{library.parent}",
                    "-Wl,--no-as-needed", "-lnamesake")
    folder = executable(tmp_path / "here/prog", program)
    (folder / "below").mkdir()
    return folder


@pytest.mark.parametrize("name, where", [("./prog", "."), ("../prog", "below"), (".//prog", "."),
                                         ("../here/./prog", ".")])
def test_doctor_looks_at_the_program_that_was_named(hmalloc, path_with_decoy, folder_with_program, name, where):
    shown = hmalloc("doctor", "--", name, folder=folder_with_program / where, PATH=path_with_decoy)
    assert shown.returncode == 0, shown.stdout + shown.stderr
    text = "".join(shown.stdout.split())
    assert f"yes: hmalloc serves {name} " in shown.stdout
    assert "libnamesake.so" in text and "decoys" not in text and "dynamic)" in text


def test_doctor_looks_along_a_relative_path_too(hmalloc, path_with_decoy, folder_with_program):
    shown = hmalloc("doctor", "--", "prog", folder=folder_with_program, PATH=f".:{path_with_decoy}")
    assert shown.returncode == 0 and "libnamesake.so" in "".join(shown.stdout.split())


def test_a_bare_name_is_the_one_in_path(hmalloc, path_with_decoy, folder_with_program):
    shown = hmalloc("doctor", "--", "prog", folder=folder_with_program, PATH=path_with_decoy)
    assert shown.returncode == 1 and "no: hmalloc cannot serve prog: the program is statically linked" in shown.stdout


def test_an_interpreter_without_a_slash_is_not_searched_for(hmalloc, path_with_decoy, folder_with_program, script):
    outer = script("#!prog\n", name="outer")
    shown = hmalloc("doctor", "--", outer, folder=folder_with_program, PATH=path_with_decoy)
    assert shown.returncode == 0 and "libnamesake.so" in "".join(shown.stdout.split())


def test_compare_keeps_its_note(hmalloc, path_with_decoy, folder_with_program):
    shown = hmalloc("compare", "-n", "1", "--", "./prog", folder=folder_with_program, PATH=path_with_decoy)
    assert "Without a preload its malloc is libnamesake.so" in " ".join(shown.stdout.split()), shown.stdout + shown.stderr


def test_run_and_trace_start_the_program_that_was_named(hmalloc, build, path_with_decoy, tmp_path):
    folder = executable(tmp_path / "there/prog", build("touch.c", "touch"))
    assert hmalloc("run", "--", "./prog", folder=folder, PATH=path_with_decoy).returncode == 0
    done = hmalloc("trace", "record", "-o", tmp_path / "trace", "--", "./prog", folder=folder, PATH=path_with_decoy)
    assert done.returncode == 0, done.stderr
