"""Checks of the shape of sources and library.  lint.py --root R --build B [--cc CC] [--cxx CXX] [CHECK...]

Without names all checks are run.  A check returns a list of complaints.
"""
import argparse
import sys

import library
import links
import packages
import sources

CHECKS = {**sources.CHECKS, **library.CHECKS, **links.CHECKS, **packages.CHECKS}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--root", required=True)
    parser.add_argument("--build", required=True)
    parser.add_argument("--cc", default="cc")
    parser.add_argument("--cxx", default="c++")
    parser.add_argument("checks", nargs="*")
    options = parser.parse_args()
    failed = False
    for name in options.checks or CHECKS:
        complaints = CHECKS[name](options)
        for complaint in complaints:
            print(f"{name}: {complaint}")
        print(f"{name}: {'FAILED' if complaints else 'ok'}")
        failed = failed or bool(complaints)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
