"""A program that was named by a path is that program, whatever else bears its name in PATH."""

import os
import subprocess

import pytest


@pytest.fixture
def marker(tmp_path):
    return tmp_path / "marker"


@pytest.fixture
def path_with_decoy(build, tmp_path, marker):
    """A PATH whose first `prog` leaves a file when it is run.  Static: no loader keeps it from running."""
    program = build("mark.c", "decoy", "-static", f'-DMARKER="{marker}"')
    folder = tmp_path / "decoys"
    folder.mkdir()
    os.symlink(program, folder / "prog")
    path = f"{folder}:{os.environ['PATH']}"
    subprocess.run(["sh", "-c", "prog"], env={"PATH": path}, check=True)
    assert marker.exists(), "the decoy can be run and found out"
    marker.unlink()
    return path


@pytest.fixture
def folder_with_program(build, tmp_path):
    """A folder with a `prog` whose malloc is that of a library of its own."""
    folder = tmp_path / "here"
    folder.mkdir()
    library = build("own_malloc.c", "libnamesake.so", "-shared", "-fPIC", "-fno-builtin")
    program = build("touch.c", "prog-with-a-library", f"-L{library.parent}", f"-Wl,-rpath,{library.parent}",
                    "-Wl,--no-as-needed", "-lnamesake")
    (folder / "prog").write_bytes(program.read_bytes())
    (folder / "prog").chmod(0o755)
    (folder / "below").mkdir()
    return folder


@pytest.mark.parametrize("name, where", [("./prog", "."), ("../prog", "below"), (".//prog", "."),
                                         ("../here/./prog", ".")])
def test_doctor_looks_at_the_program_that_was_named(hmalloc, path_with_decoy, folder_with_program, marker, name, where):
    shown = hmalloc("doctor", "--", name, folder=folder_with_program / where, PATH=path_with_decoy)
    assert shown.returncode == 0, shown.stdout + shown.stderr
    text = "".join(shown.stdout.split())
    assert f"yes: hmalloc serves {name} " in shown.stdout
    assert "libnamesake.so" in text and "decoys" not in text and "dynamic)" in text
    assert not marker.exists()


def test_doctor_looks_along_a_relative_path_too(hmalloc, path_with_decoy, folder_with_program, marker):
    shown = hmalloc("doctor", "--", "prog", folder=folder_with_program, PATH=f".:{path_with_decoy}")
    assert shown.returncode == 0 and "libnamesake.so" in "".join(shown.stdout.split())
    assert not marker.exists()


def test_a_bare_name_is_the_one_in_path(hmalloc, path_with_decoy, folder_with_program, marker):
    shown = hmalloc("doctor", "--", "prog", folder=folder_with_program, PATH=path_with_decoy)
    assert shown.returncode == 1 and "no: hmalloc cannot serve prog: the program is statically linked" in shown.stdout
    assert not marker.exists()


def test_an_interpreter_without_a_slash_is_not_searched_for(hmalloc, path_with_decoy, folder_with_program, marker, script):
    outer = script("#!prog\n", name="outer")
    shown = hmalloc("doctor", "--", outer, folder=folder_with_program, PATH=path_with_decoy)
    assert shown.returncode == 0 and "libnamesake.so" in "".join(shown.stdout.split())
    assert not marker.exists()


def test_compare_keeps_its_note(hmalloc, path_with_decoy, folder_with_program, marker):
    shown = hmalloc("compare", "-n", "1", "--", "./prog", folder=folder_with_program, PATH=path_with_decoy)
    assert "Without a preload its malloc is libnamesake.so" in " ".join(shown.stdout.split()), shown.stdout + shown.stderr
    assert not marker.exists()


def test_run_and_trace_start_the_program_that_was_named(hmalloc, build, path_with_decoy, tmp_path, marker):
    folder = tmp_path / "there"
    folder.mkdir()
    (folder / "prog").write_bytes(build("touch.c", "touch").read_bytes())
    (folder / "prog").chmod(0o755)
    assert hmalloc("run", "--", "./prog", folder=folder, PATH=path_with_decoy).returncode == 0
    done = hmalloc("trace", "record", "-o", tmp_path / "trace", "--", "./prog", folder=folder, PATH=path_with_decoy)
    assert done.returncode == 0, done.stderr
    assert not marker.exists()
