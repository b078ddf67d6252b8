#include "app/interrupt.h"

#include <unistd.h>

#include <atomic>

namespace pdes::app {

namespace {

// Signal handlers may touch only these lock-free atomics.
std::atomic<Simulation*> g_running{nullptr};
std::atomic<int> g_signal{0};
static_assert(std::atomic<Simulation*>::is_always_lock_free && std::atomic<int>::is_always_lock_free);

void interrupted(int signal) {
  g_signal = signal;
  if (Simulation* simulation = g_running.exchange(nullptr)) simulation->stop();
  else _exit(128 + signal);
}

}  // namespace

Interrupt::Interrupt(Simulation& simulation) {
  g_running = &simulation;
  struct sigaction action{};
  action.sa_handler = interrupted;
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, &for_int_);
  sigaction(SIGTERM, &action, &for_term_);
}

Interrupt::~Interrupt() {
  sigaction(SIGINT, &for_int_, nullptr);
  sigaction(SIGTERM, &for_term_, nullptr);
  g_running = nullptr;
}

int Interrupt::signal() noexcept { return g_signal; }

}  // namespace pdes::app
