"""What has to be compiled to be seen."""
import subprocess


def header_alone(options):
    """The public headers as every language takes them that they are for.  What is linked: tests/conformance, case 58."""
    complaints = []
    warnings = "-Wall -Wextra -Wconversion -Wshadow -pedantic -Werror -fsyntax-only".split()
    for compiler, standard, header in ((options.cc, "c11", "hmalloc_local.h"), (options.cc, "c17", "hmalloc_local.h"),
                                       (options.cxx, "c++20", "hmalloc_local.h"), (options.cxx, "c++23", "hmalloc_local.h"),
                                       (options.cxx, "c++20", "hmalloc.hpp")):
        program = f"#include <hmalloc/{header}>\nint use_it(void);\nint use_it(void) {{ return HM_VERSION_MAJOR; }}\n"
        command = [compiler, f"-std={standard}", *warnings, f"-I{options.root}/include", "-x", standard.rstrip("0123456789"), "-"]
        done = subprocess.run(command, input=program, capture_output=True, text=True)
        if done.returncode != 0:
            complaints.append(f"{header} as {standard}: {done.stderr.strip()[:400]}")
    return complaints


CHECKS = {"header_alone": header_alone}
