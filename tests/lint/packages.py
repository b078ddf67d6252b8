"""What the packages say of the library, which whoever changes the library does not see."""
import pathlib
import re

import library


def read(options, name):
    return pathlib.Path(options.root, name).read_text()


def versions_agree(options):
    version = re.search(r"^project\(hmalloc VERSION (\S+)", read(options, "CMakeLists.txt"), re.M)[1]
    major, minor, patch = version.split(".")
    complaints = []
    for file, pattern in (("include/hmalloc/hmalloc.h", f'_MAJOR {major}\n.*_MINOR {minor}\n.*_PATCH {patch}\n.*_STRING "{version}"'),
                          ("packaging/debian/changelog", rf"\Ahmalloc \({version}-"),
                          ("packaging/hmalloc.spec", f"^Version: *{version}$")):
        if not re.search(pattern, read(options, file), re.M):
            complaints.append(f"{file} does not say {version}, and CMakeLists.txt does")
    return complaints


def symbols_of_package(options):
    """dpkg-gensymbols asks for the same when a package is built."""
    file = "packaging/debian/libhmalloc0.symbols"
    listed = {match.removesuffix("@Base") for match in re.findall(r"^ (\S+)", read(options, file), re.M)}
    listed -= {f"{version}@{version}" for version in library.EXPLICIT}
    found = library.versioned_names_in(str(pathlib.Path(options.build, "libhmalloc.so")))
    return ([f"{file} lacks {name}" for name in sorted(found - listed)] +
            [f"{file} has {name}, which libhmalloc.so has not" for name in sorted(listed - found)])


CHECKS = {check.__name__: check for check in (versions_agree, symbols_of_package)}
