// What tests take for granted of the system that runs them, and an emulator of processes (qemu-user) or an old kernel does
// not give.  Each is found out by trying it.  A test that needs what is not there is skipped, or leaves that part out, and
// says why; the real kernel of tests/aarch64 runs it.  On a kernel of today nothing is missing, which the test `system`
// makes sure of.
#pragma once
#include <span>

namespace hm::test {

struct Property {
  const char* name;
  const char* missing;  // said where it does not hold
  bool (*holds)();      // forks; for a process that has no other threads
};

extern const Property kEmptiesPages, kSharesWithVfork, kStartsThreadsInChildren, kHeedsAdvice, kLimitsAddresses,
    kCountsTheProgram, kListsByThread, kFiltersCalls, kRunsTheSamePrograms;

std::span<const Property* const> all_properties();

}  // namespace hm::test

// In a test of GoogleTest.
#define HM_NEEDS(property) \
  if (!hm::test::property.holds()) GTEST_SKIP() << hm::test::property.missing
