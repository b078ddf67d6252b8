// What the simulated machine says of itself to the program, in place of the real one: so many CPUs, a clock that goes by the
// instructions that were executed, and random bytes that are the same in every run.  Answers of system calls are written
// over when they have been given: a 64-bit program has the addresses of the emulator's process.
#pragma once

#include <array>
#include <cstdint>

namespace cores {

class Machine {
 public:
  explicit Machine(unsigned cores) : cores_(cores) {}

  void execute(std::uint64_t instructions) { instructions_ += instructions; }

  static constexpr unsigned kMostThreads = 4096;
  using Arguments = std::array<std::uint64_t, 3>;
  void asks(unsigned thread, Arguments arguments) { asked_[thread % kMostThreads] = arguments; }
  void answers(unsigned thread, std::int64_t number, std::int64_t result);

 private:
  void tell_time(std::uint64_t address) const;
  void tell_cpus(std::uint64_t address, std::uint64_t bytes) const;
  void tell_random(std::uint64_t address, std::uint64_t bytes);

  const unsigned cores_;
  std::uint64_t instructions_ = 0;
  std::uint64_t random_ = 0;
  std::array<Arguments, kMostThreads> asked_{};
};

}  // namespace cores
