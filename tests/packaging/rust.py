"""Packages the Rust crates, unpacks them away from the repository, and lints, tests and runs them there.

    rust.py --work DIR [--features FEATURES]

Exit status: 0 all is well, 1 not so, 77 when there is no cargo, or no way to get the crates that these need.
"""
import argparse
import os
import pathlib
import shutil
import subprocess
import sys

SKIPPED = 77
WORKSPACE = pathlib.Path(__file__).resolve().parents[2] / "packaging/rust"
UNPACKED = """
[workspace]
members = ["hmalloc-sys-*", "hmalloc-[0-9]*"]
resolver = "2"

[patch.crates-io]
hmalloc-sys = {{ path = "{sys}" }}
"""


def cargo(folder, target, *arguments, **options):
    print("cargo", *arguments, flush=True)
    environment = {**os.environ, "CARGO_TARGET_DIR": str(target)}
    return subprocess.run(["cargo", *arguments], cwd=folder, env=environment, **options)


def unpack(target, place):
    """The crates as a registry has them, in a workspace of their own with the versions that ours pins."""
    for crate in (target / "package").glob("*.crate"):
        subprocess.run(["tar", "-xmzf", crate, "-C", place], check=True)  # -m: now, or cargo would not see what changed
    (bindings,) = place.glob("hmalloc-sys-*")
    (place / "Cargo.toml").write_text(UNPACKED.format(sys=bindings.name))
    shutil.copy(WORKSPACE / "Cargo.lock", place)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--work", type=pathlib.Path, required=True, help="a folder that this may empty")
    parser.add_argument("--features", default="allocator-api2", help="of the crate hmalloc")
    options = parser.parse_args()
    if not shutil.which("cargo"):
        print("skipped: no cargo (Debian: cargo)")
        return SKIPPED
    shutil.rmtree(options.work, ignore_errors=True)
    target, place = options.work.resolve() / "target", options.work.resolve() / "unpacked"
    place.mkdir(parents=True)
    fetched = cargo(WORKSPACE, target, "fetch", "--locked", capture_output=True, text=True)
    if fetched.returncode != 0 and "--locked" not in fetched.stderr:  # that would be a Cargo.lock that does not fit
        print(f"skipped: the crates cannot be had\n{fetched.stderr}")
        return SKIPPED

    packaged = cargo(WORKSPACE, target, "package", "--workspace", "--no-verify", "--allow-dirty", "--locked", "--offline",
                     stderr=subprocess.PIPE, text=True)
    if packaged.returncode == 0:
        unpack(target, place)
    elif "no matching package named `hmalloc-sys`" in packaged.stderr:
        print("left out: packages (this cargo makes none of a crate that needs one which is not published)")
        place = WORKSPACE
    else:
        sys.exit(packaged.stderr)
    features = ["--workspace", "--locked", "--offline", "--features", options.features]
    if shutil.which("cargo-fmt"):
        cargo(WORKSPACE, target, "fmt", "--check", check=True)
    if shutil.which("cargo-clippy"):
        cargo(place, target, "clippy", "--all-targets", *features, "--", "-D", "warnings", check=True)
    cargo(place, target, "test", *features, check=True)
    cargo(place, target, "run", *features[1:], "--example", "pipeline", "--", "50000", check=True)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except subprocess.CalledProcessError as error:
        sys.exit(f"failed: {' '.join(map(str, error.cmd))}")
