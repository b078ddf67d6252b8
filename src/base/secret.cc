#include "base/secret.h"

#include <sys/auxv.h>
#include <sys/random.h>
#include <sys/syscall.h>

#include <cstring>

#include "base/system_call.h"

namespace hm {

constinit Frozen<Secret> secret;

namespace {

// Of the system; or, where it has none yet, of the bytes that it gave the process.
uint64_t random_of_system() noexcept {
  uint64_t drawn = 0;
  if (system_call(SYS_getrandom, system_call_argument(&drawn), sizeof drawn, GRND_NONBLOCK) == sizeof drawn) return drawn;
  uint64_t given[2] = {};
  auto* bytes = reinterpret_cast<const void*>(getauxval(AT_RANDOM));
  if (bytes != nullptr) memcpy(given, bytes, sizeof given);
  return mix_bits(given[0]) ^ given[1] ^ address_of(&drawn);
}

std::atomic<uint64_t> threads{0};  // that have drawn numbers.  Relaxed: no two get the same
constinit thread_local uint64_t state = 0;

}  // namespace

uint64_t Secret::draw() noexcept {
  uint64_t drawn = random_of_system() | 1, known = 0;
  return key_.compare_exchange_strong(known, drawn, std::memory_order_relaxed) ? drawn : known;
}

// A counter whose bits are mixed: Steele, Lea, Flood, "Fast splittable pseudorandom number generators" (2014).
uint64_t next_random() noexcept {
  constexpr uint64_t kStep = 0x9e3779b97f4a7c15;
  if (HM_UNLIKELY(state == 0)) state = mix_bits(secret.key() + threads.fetch_add(kStep, std::memory_order_relaxed));
  return mix_bits(state += kStep);
}

}  // namespace hm
