"""What has to be compiled and linked to be seen."""
import os
import pathlib
import subprocess
import tempfile

C_PROGRAM = r"""
#include <hmalloc/hmalloc_local.h>
#include <stdlib.h>
#include <string.h>
int main(void) {
  char* block = malloc(100);
  if (block == NULL) return 1;
  strcpy(block, "hmalloc");
  block = realloc(block, 100000);
  if (block == NULL || strcmp(block, "hmalloc") != 0) return 2;
  free(block);
  void* local = hm_local_alloc(40);
  void* shared = hm_shared_alloc(40);
  hm_local_free(local);
  hm_shared_free(shared);
  struct hm_stats stats;
  hm_stats_get(&stats);
  return stats.heaps == 1 && stats.refills > 0 ? 0 : 3;  /* the very malloc above */
}
"""
CXX_PROGRAM = r"""
#include <hmalloc/hmalloc_local.h>
#include <map>
#include <new>
#include <string>
#include <thread>
volatile size_t too_much = SIZE_MAX / 4;
int main() {
  std::map<int, std::string> names;
  std::thread([&] { for (int i = 0; i < 1000; ++i) names[i] = std::string(50, 'x'); }).join();
  names.clear();
  try {
    char* volatile block = new char[too_much];  // volatile: the compiler may leave out what it sees through
    delete[] block;
    return 1;
  } catch (const std::bad_alloc&) {
  }
  hm_stats stats;
  hm_stats_get(&stats);
  return stats.heaps >= 1 && stats.refills > 0 ? 0 : 2;
}
"""
ONE_LINE = "#include <hmalloc/hmalloc_local.h>\nint use_the_header(void);\nint use_the_header(void) { return HM_VERSION_MAJOR; }\n"


def attempt(command, what, **more):
    done = subprocess.run(command, capture_output=True, text=True, **more)
    if done.returncode == 0:
        return []
    return [f"{what}: exit {done.returncode}: {(done.stderr or done.stdout).strip()[:400]}"]


def build(options, folder, language, flags):
    """Compiles and links a program with the archive; returns its path and complaints."""
    source = pathlib.Path(folder, f"program.{'c' if language == 'c' else 'cc'}")
    source.write_text(C_PROGRAM if language == "c" else CXX_PROGRAM)
    compiler = [options.cc, "-std=c11"] if language == "c" else [options.cxx, "-std=c++20"]
    program = str(source.with_suffix(""))
    command = [*compiler, *flags, f"-I{options.root}/include", str(source), f"{options.build}/libhmalloc.a",
               "-pthread", "-o", program]
    return program, attempt(command, f"{language} {' '.join(flags)}: linking")


def link_and_run(options, flag_sets):
    complaints = []
    for language in ("c", "c++"):
        for flags in flag_sets:
            with tempfile.TemporaryDirectory() as folder:
                program, failed = build(options, folder, language, flags)
                complaints += failed or attempt([program], f"{language} {' '.join(flags)}: running", timeout=60)
    return complaints


def static_links(options):
    return link_and_run(options, [["-O2"], ["-O2", "-static"], ["-O2", "-static-pie"]])


def static_links_lto(options):
    return link_and_run(options, [["-O2", "-flto"], ["-O2", "-flto", "-static"]])


def archive_starts(options):
    """The archive's own start must be linked: nobody refers to it, and without it there are no options and no fork."""
    with tempfile.TemporaryDirectory() as folder:
        program, failed = build(options, folder, "c", ["-O2", "-static"])
        if failed:
            return failed
        done = subprocess.run([program], capture_output=True, text=True, env={**os.environ, "HMALLOC_VERBOSE": "1"})
        return [] if "hmalloc" in done.stderr else ["HMALLOC_VERBOSE=1 says nothing in a program linked with the archive"]


def header_alone(options):
    complaints = []
    warnings = ["-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-pedantic", "-Werror", "-fsyntax-only",
                f"-I{options.root}/include"]
    for compiler, standard, language in ((options.cc, "c11", "c"), (options.cc, "c17", "c"), (options.cxx, "c++20", "c++"),
                                         (options.cxx, "c++23", "c++")):
        complaints += attempt([compiler, f"-std={standard}", *warnings, "-x", language, "-"], f"hmalloc.h as {standard}",
                              input=ONE_LINE)
    if pathlib.Path(options.root, "include/hmalloc/hmalloc.hpp").exists():
        complaints += attempt([options.cxx, "-std=c++20", *warnings, "-x", "c++", "-"], "hmalloc.hpp",
                              input=ONE_LINE.replace("hmalloc_local.h>", "hmalloc.hpp>"))
    return complaints


CHECKS = {f.__name__: f for f in (header_alone, static_links, static_links_lto, archive_starts)}
