// Ctrl-C and SIGTERM: the first one stops the simulation, which then reports what it has; the second ends the program.
#pragma once

#include <csignal>

#include "pdes/simulation.h"

namespace pdes::app {

// Only one may exist at a time.
class Interrupt {
 public:
  explicit Interrupt(Simulation& simulation);
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  static int signal() noexcept;  // that was received; 0: none

 private:
  struct sigaction for_int_, for_term_;  // the previous actions
};

}  // namespace pdes::app
