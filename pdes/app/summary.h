// The outcome of a run: for people, and as one line of JSON.
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
  double cpu_share = 0;    // CPU use of each thread of this rank
  std::string error{};     // what ended it; empty: none
  bool elsewhere = false;  // the error is on another rank, which prints it
};

Json summary(const Run& run);
void print_summary(const Run& run, std::FILE* to);

}  // namespace pdes::app
