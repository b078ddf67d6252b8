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
                          ("packaging/hmalloc.spec", f"^Version: *{version}$"),
                          ("meson.build", f"^project\\('hmalloc', .*version: '{version}'"),
                          ("MODULE.bazel", f'^module\\(name = "hmalloc", version = "{version}"\\)'),
                          ("packaging/vcpkg/vcpkg.json", f'"version": "{version}"'),
                          ("packaging/rust/hmalloc-sys/Cargo.toml", f'^version = "{version}"'),
                          ("packaging/rust/hmalloc/Cargo.toml", rf'^version = "{version}"(.*\n)*hmalloc-sys = .*"={version}"'),
                          ("CHANGELOG.md", rf"^## {version},"),
                          # What hmalloc_local.h relies on may change with the next minor version.
                          ("packaging/debian/libhmalloc0.symbols", rf"\(<< {major}\.{int(minor) + 1}~\)")):
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


def builds_agree(options):
    """Meson, Bazel and Rust compile what CMake compiles, with the same flags; Bazel and Rust take what lies in src."""
    cmake = read(options, "CMakeLists.txt")

    def listed(start):
        return set(cmake.split(start, 1)[1].split(")", 1)[0].split())

    root = pathlib.Path(options.root)
    sources = {str(path.relative_to(root)) for path in root.glob("src/**/*.cc")}
    choice = {"HARDENED": listed("set(HM_HARDENED ${HM_ALLOCATOR}"), "NOT_HARDENED": listed("list(REMOVE_ITEM HM_HARDENED")}
    all_of_cmake = listed("set(HM_BASE").union(listed("set(HM_ALLOCATOR ${HM_BASE}"), listed("set(HM_OVERRIDE"), choice["HARDENED"])
    complaints = [f"{name}: in src, or in CMakeLists.txt, and not in both" for name in sorted(sources ^ all_of_cmake)]
    # -fconstexpr-steps is for the baselines.
    flags = {flag for flag in re.findall(r"-f[\w=-]+", cmake.split("set(HM_SUBSET", 1)[1].split(")", 1)[0]) if "constexpr" not in flag}
    for file in ("meson.build", "BUILD.bazel", "packaging/rust/hmalloc-sys/build.rs"):
        text = read(options, file)
        others = set(re.findall(r"""["'](-f[\w=-]+)["']""", text)) - {"-fexceptions"}
        complaints += [f"{file}: {flag} is in it, or in CMakeLists.txt, and not in both" for flag in sorted(flags ^ others)]
        for name, expected in choice.items():  # Meson reads CMakeLists.txt
            found = re.search(rf"^(?:const )?{name}\b.*? = &?\[(.*?)\]", text, re.M | re.S)
            if found and {f"src/{path.removeprefix('src/')}" for path in re.findall('"(.*?)"', found[1])} != expected:
                complaints.append(f"{file}: {name} is not what CMakeLists.txt has")
    return complaints


CHECKS = {check.__name__: check for check in (versions_agree, symbols_of_package, builds_agree)}
