// The options that every model program has.
#pragma once

#include <string>

#include "app/command_line.h"

namespace pdes::app {

enum class Live { automatic, on, off, json };

// What the user wants to see.
struct Output {
  bool json = false, quiet = false;
  Live live = Live::automatic;
  std::string series{}, summary{};  // files; empty: none
};

extern const Named<Allocator> kAllocators;
extern const Named<Blocks> kBlocks;
extern const Named<Queue> kQueues;
extern const Named<Sync> kSyncs;
extern const Named<Generator> kGenerators;
extern const Named<Ties> kTies;
extern const Named<Partitioning> kPartitionings;
extern const Named<Balance> kBalances;
extern const Named<BalanceBy> kBalancesBy;
extern const Named<Gather> kGathers;

// Options and output hold the defaults.  oversubscribe: more threads than CPUs may be started.
void declare_common(CommandLine& line, Options& options, bool& oversubscribe, Output& output);

}  // namespace pdes::app
