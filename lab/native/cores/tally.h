// What is counted: within the allocator's calls, by the whole program, and which instructions of the allocator move lines.
#pragma once

#include <cstdint>
#include <cstdio>
#include <map>
#include <unordered_set>
#include <utility>

#include "coherence.h"

namespace cores {

struct Counts {
  std::uint64_t instructions = 0;
  std::uint64_t locked = 0;
  std::uint64_t fills = 0;
  std::uint64_t transfers = 0;
  std::uint64_t upgrades = 0;
  std::uint64_t far = 0;        // of the transfers and upgrades
  std::uint64_t hand_offs = 0;  // of the transfers and upgrades: by a locked instruction

  void add(Outcome outcome, bool locked_access);
};

// Whose line it is: the program's if it has ever touched it outside the calls.
enum class Line : std::uint8_t { allocators, programs };

class Tally {
 public:
  void execute(std::uint64_t instructions, bool in_call);
  void lock(bool in_call);
  void touch(LineNumber line) { programs_.insert(line); }  // outside the calls
  // site: the address of the instruction.
  void access(Outcome outcome, std::uint64_t site, LineNumber line, bool locked_access, bool in_call);

  void begin();  // what was counted before was the warm-up
  // One line of JSON.  Sites are named as the process maps them.
  void write(std::FILE* out) const;

 private:
  void write_sites(std::FILE* out) const;

  Counts calls_, whole_;
  std::unordered_set<LineNumber> programs_;
  std::map<std::pair<std::uint64_t, Line>, Counts> sites_;
};

}  // namespace cores
