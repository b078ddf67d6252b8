#include "app/interrupt.h"

#include <unistd.h>

#include <atomic>

namespace pdes::app {

namespace {

// Signal handlers may touch only these lock-free atomics.
std::atomic<Simulation*> g_running{nullptr};
std::atomic<Simulation*> g_saved{nullptr};
std::atomic<int> g_signal{0};
std::atomic<bool> g_requested{false};
static_assert(std::atomic<Simulation*>::is_always_lock_free && std::atomic<int>::is_always_lock_free &&
              std::atomic<bool>::is_always_lock_free);

void interrupted(int signal) {
  g_signal = signal;
  if (Simulation* simulation = g_running.exchange(nullptr)) simulation->stop();
  else _exit(128 + signal);
}

void asked_to_save(int) {
  g_requested = true;
  if (Simulation* simulation = g_saved) simulation->save();
}

}  // namespace

Interrupt::Interrupt(Simulation& simulation) : saves_(!simulation.options().checkpoint.empty()) {
  g_running = &simulation;
  g_saved = &simulation;
  struct sigaction action{};
  action.sa_handler = interrupted;
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, &for_int_);
  sigaction(SIGTERM, &action, &for_term_);
  action.sa_handler = asked_to_save;
  if (saves_) sigaction(SIGUSR1, &action, &for_usr1_);
}

Interrupt::~Interrupt() {
  sigaction(SIGINT, &for_int_, nullptr);
  sigaction(SIGTERM, &for_term_, nullptr);
  if (saves_) sigaction(SIGUSR1, &for_usr1_, nullptr);
  g_running = nullptr;
  g_saved = nullptr;
}

void Interrupt::ignore_requests() noexcept { std::signal(SIGUSR1, SIG_IGN); }
int Interrupt::signal() noexcept { return g_signal; }
bool Interrupt::take_request() noexcept { return g_requested.exchange(false); }

}  // namespace pdes::app
