"""A project of somebody else's takes hmalloc in by Meson, Bazel or vcpkg, and its programs are served by it.

    build_systems.py meson|bazel|vcpkg --work DIR --build BUILD

vcpkg is in no registry, so that its functions are stand-ins, and the library is that of BUILD. The same holds for the rules that
Bazel would fetch. Exit status: 0 all is well, 1 not so, 77 when the tool is missing.
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

SKIPPED = 77
ROOT = pathlib.Path(__file__).resolve().parents[2]
CALLS_NOTHING = "int main(void) { return 0; }\n"  # the linker sees no reason for a malloc, and libc calls it all the same

MESON = """project('uses_hmalloc', 'c')
foreach kind, static : {'shared': false, 'archive': true}
  executable(kind, 'program.c', dependencies: dependency('hmalloc', static: static))
  executable(kind + '-bare', 'bare.c', dependencies: dependency('hmalloc', static: static))
endforeach
"""

BAZEL = """load("@rules_cc//cc:defs.bzl", "cc_binary")
cc_binary(name = "program", srcs = ["program.c"], malloc = "@hmalloc")
cc_binary(name = "bare", srcs = ["bare.c"], malloc = "@hmalloc")
cc_binary(name = "hardened", srcs = ["program.c"], malloc = "@hmalloc//:hmalloc_hardened")
"""
# In its repository Bazel wants a file that newer ones do without; the rules are built in, and others only give them names.
WORKSPACE = """new_local_repository(name = "hmalloc", path = "{root}", build_file = "{root}/BUILD.bazel")
local_repository(name = "rules_cc", path = "rules_cc")
local_repository(name = "rules_java", path = "rules_java")
"""
RULES = {"cc": ["cc_binary", "cc_library", "cc_proto_library", "cc_test", "cc_toolchain", "cc_toolchain_suite", "objc_library"],
         "java": ["java_binary", "java_import", "java_library", "java_proto_library", "java_runtime", "java_toolchain"]}

MANIFEST = {"name": str, "version": str, "description": str, "license": str, "supports": str, "dependencies": list}
# Configures with what the port says, and installs what was built; the CMake package goes one folder up, as vcpkg wants it.
VCPKG = """function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()
function(vcpkg_cmake_configure)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" SOURCE_PATH OPTIONS)
  run(${CMAKE_COMMAND} -S ${arg_SOURCE_PATH} -B ${WORK}/configured -GNinja ${arg_OPTIONS})
endfunction()
function(vcpkg_cmake_install)
  foreach(component runtime development)
    run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${CURRENT_PACKAGES_DIR} --component ${component})
  endforeach()
endfunction()
function(vcpkg_cmake_config_fixup)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" CONFIG_PATH "")
  file(GLOB files ${CURRENT_PACKAGES_DIR}/${arg_CONFIG_PATH}/*)
  file(MAKE_DIRECTORY ${CURRENT_PACKAGES_DIR}/share/${PORT})
  foreach(file IN LISTS files)
    file(READ ${file} text)
    string(REPLACE "/../../../" "/../../" text "${text}")
    string(REPLACE "LIST_FILE}\\" PATH)" "LIST_FILE}\\" ABSOLUTE)" text "${text}")
    cmake_path(GET file FILENAME name)
    file(WRITE ${CURRENT_PACKAGES_DIR}/share/${PORT}/${name} "${text}")
  endforeach()
  file(REMOVE_RECURSE ${CURRENT_PACKAGES_DIR}/lib/cmake)
endfunction()
function(vcpkg_fixup_pkgconfig)
endfunction()
function(vcpkg_install_copyright)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "" FILE_LIST)
  configure_file(${arg_FILE_LIST} ${CURRENT_PACKAGES_DIR}/share/${PORT}/copyright COPYONLY)
endfunction()
set(PORT hmalloc)
include(${PORT_DIR}/portfile.cmake)
"""


def run(*command, **options):
    print(*command, flush=True)
    return subprocess.run([str(word) for word in command], check=True, stdin=subprocess.DEVNULL, **options)


def must_be_served(program, variant=""):
    done = run(program, env={**os.environ, "HMALLOC_VERBOSE": "1"}, stderr=subprocess.PIPE, text=True)
    if not re.search(rf"^hmalloc [0-9.]+{variant}: active", done.stderr, re.M):
        sys.exit(f"{program} is not served by hmalloc{variant}; it says on standard error:\n{done.stderr}")


def new_project(folder, **files):
    folder.mkdir(parents=True)
    shutil.copy(ROOT / "packaging/conan/test_package/program.c", folder)
    (folder / "bare.c").write_text(CALLS_NOTHING)
    for name, text in files.items():
        (folder / name.replace("_", ".")).write_text(text)
    return folder


def meson(work, _):
    project = new_project(work / "project", meson_build=MESON)
    (project / "subprojects").mkdir()
    (project / "subprojects/hmalloc").symlink_to(ROOT)
    for variant in ("", " hardened"):
        build = work / f"build{variant}"
        run("meson", "setup", f"-Dhmalloc:hardened={str(bool(variant)).lower()}", build, project,
            env=os.environ | {"CXXFLAGS": "-D_GLIBCXX_ASSERTIONS"})  # newer ones of Meson add it
        run("ninja", "-C", build)
        for kind in ("shared", "archive"):
            must_be_served(build / kind, variant)
            must_be_served(build / f"{kind}-bare", variant)


def bazel(work, _):
    version = run("bazel", "--version", stdout=subprocess.PIPE, text=True).stdout.split()[-1]
    if not version.startswith(("4.", "no_version")):  # what Debian builds does not know its number
        print(f"skipped: without a network this is for Bazel 4, Debian's, and bazel is {version}")
        return SKIPPED
    project = new_project(work / "project", BUILD=BAZEL, WORKSPACE=WORKSPACE.format(root=ROOT))
    for language, names in RULES.items():
        folder = project / f"rules_{language}" / language
        folder.mkdir(parents=True)
        (folder.parent / "WORKSPACE").touch()
        (folder / "BUILD").touch()
        (folder / "defs.bzl").write_text("".join(f"{name} = native.{name}\n" for name in names))
    # --batch: no server stays. What it has made is without write bits, and in its way the next time.
    run("bazel", f"--output_user_root={work}/bazel", "--batch", "build", ":all", cwd=project)
    must_be_served(project / "bazel-bin/program")
    must_be_served(project / "bazel-bin/bare")
    must_be_served(project / "bazel-bin/hardened", " hardened")
    return 0


def vcpkg(work, build):
    port = ROOT / "packaging/vcpkg"
    manifest = json.loads((port / "vcpkg.json").read_text())
    if {name: type(value) for name, value in manifest.items()} != MANIFEST:
        sys.exit(f"vcpkg.json has other fields than {', '.join(MANIFEST)}, or of other types")
    packages = work / "packages"
    work.mkdir(parents=True)
    (work / "port.cmake").write_text(VCPKG)
    said = run("cmake", f"-DWORK={work}", f"-DBUILD={build}", f"-DPORT_DIR={port}", f"-DCURRENT_PACKAGES_DIR={packages}", "-P",
               work / "port.cmake", stderr=subprocess.PIPE, text=True).stderr
    if "Manually-specified variables were not used" in said:
        sys.exit(f"an option of the port is none of the project's:\n{said}")
    for name in ("share/hmalloc/copyright", "share/hmalloc/usage", "share/hmalloc/hmalloc-config.cmake", "include/hmalloc/hmalloc.h"):
        if not (packages / name).exists():
            sys.exit(f"the port does not install {name}")
    if left := [name for name in ("share/doc", "share/man", "lib/cmake") if (packages / name).exists()]:
        sys.exit(f"the port leaves {', '.join(left)}, which have no place there")
    used = work / "used"
    run("cmake", "-S", ROOT / "tests/install/consumer", "-B", used, "-GNinja", f"-DCMAKE_PREFIX_PATH={packages}",
        f"-DEXAMPLES={ROOT}/examples")
    run("cmake", "--build", used)
    for program in ("examples/example-drop_in", "with-archive", "wholly-static"):
        must_be_served(used / program)


TOOLS = {"meson": (meson, "meson"), "bazel": (bazel, "bazel-bootstrap"), "vcpkg": (vcpkg, "cmake")}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("tool", choices=TOOLS)
    parser.add_argument("--work", type=pathlib.Path, required=True, help="a folder that this may empty")
    parser.add_argument("--build", type=pathlib.Path, required=True, help="where the library is built")
    options = parser.parse_args()
    use, package = TOOLS[options.tool]
    needed = "cmake" if options.tool == "vcpkg" else options.tool
    if not shutil.which(needed):
        print(f"skipped: no {needed} (Debian: {package})")
        return SKIPPED
    shutil.rmtree(options.work, ignore_errors=True)
    return use(options.work.resolve(), options.build.resolve())


if __name__ == "__main__":
    try:
        sys.exit(main())
    except subprocess.CalledProcessError as error:
        sys.exit(f"failed: {' '.join(map(str, error.cmd))}\n{error.stderr or ''}")
