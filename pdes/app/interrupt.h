// Ctrl-C and SIGTERM: the first one stops the simulation, which then reports what it has; the second ends the program.
// SIGUSR1 makes a simulation that has a checkpoint save itself; where it comes before the run or after it, nothing happens.
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

  static void ignore_requests() noexcept;  // whenever there is no Interrupt
  static int signal() noexcept;            // that stopped it; 0: none
  static bool take_request() noexcept;     // whether SIGUSR1 was received since the last call

 private:
  struct sigaction for_int_, for_term_, for_usr1_{};  // the previous actions
  const bool saves_;
};

}  // namespace pdes::app
