// What the kernel and the loader know of this process.
#pragma once

#include <string>

namespace pdes::app {

struct Process {
  long vm_hwm_kb, vm_peak_kb, minor_faults;
  std::string malloc_library;  // the file that malloc comes from
};
Process this_process();

double cpu_seconds();  // of all threads so far

}  // namespace pdes::app
