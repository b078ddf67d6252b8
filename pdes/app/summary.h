// What a run came to: for people, and as one line of JSON.
#pragma once

#include <cstdio>
#include <string>

#include "app/command_line.h"
#include "app/process.h"
#include "pdes/app.h"

namespace pdes::app {

struct Run {
  std::string model;
  Json parameters;  // the model's own
  Options options;
  unsigned asked_threads = 1;
  int ranks = 1;
  Result result{};
  Summary derived{};
  Process process{};
  double cpu_share = 0;    // how much of a CPU each thread of this rank had
  std::string error{};     // that ended it; empty: none
  bool elsewhere = false;  // on another rank, which says so
};

Json summary(const Run& run);
void print_summary(const Run& run, std::FILE* to);

// The largest number of two digits that is not above the smallest delay seen.
double suggested_lookahead(double smallest);

}  // namespace pdes::app
