// What every workload shares.
//
// Measuring rules
//   - every block is written, so that its memory counts, and every pointer escapes, so that the compiler cannot omit
//     any call (memory.h);
//   - a worker records its own start and end after the start line (workers.h);
//   - wrong arguments end the program before work begins (arguments.h);
//   - one run, one JSON line (report.h); single calls are timed only if --latency asks for it (latency.h).
#pragma once

#include "arguments.h"
#include "latency.h"
#include "memory.h"
#include "report.h"
#include "workers.h"
