#include "profile/lives.h"

#include <linux/prctl.h>
#include <sys/syscall.h>

#include <cstring>

#include "base/process.h"
#include "base/system_call.h"
#include "profile/hash.h"

namespace hm {
namespace {

constexpr size_t kMostLives = size_t{1} << 18;
constexpr size_t kMostThreads = size_t{4} * kThreadsByNumber;

uint64_t hash_of(const Life& life) noexcept {
  uint64_t hash = mix(life.allocated_at + (uint64_t{life.freed_at} << 32));
  hash = mix(hash + life.allocated_by + (uint64_t{life.freed_by} << 32));
  return mix(hash + life.age);
}

}  // namespace

SampledThread this_thread() noexcept {
  SampledThread thread{};
  thread.id = my_thread_id();
  thread.hash = mix(thread.id);
  system_call(SYS_prctl, PR_GET_NAME, system_call_argument(thread.name));
  return thread;
}

bool Lives::add(const Life& life) noexcept {
  uint64_t hash = hash_of(life);
  uint32_t known = lives_.find(hash, [&](const Life& row) {
    return row.allocated_at == life.allocated_at && row.freed_at == life.freed_at && row.allocated_by == life.allocated_by &&
           row.freed_by == life.freed_by && row.age == life.age;
  });
  if (known == 0) {
    Life row = life;
    row.hash = hash;
    return lives_.add(row, kMostLives) != 0;
  }
  lives_[known].samples += life.samples;
  lives_[known].objects += life.objects;
  lives_[known].bytes += life.bytes;
  return true;
}

uint32_t Lives::meet(const SampledThread& thread) noexcept {
  uint32_t known = threads_.find(thread.hash, [&](const SampledThread& row) { return row.id == thread.id; });
  if (known != 0) return threads_[known] = thread, known;
  return threads_.count() < kThreadsByNumber ? threads_.add(thread, kMostThreads) : share(thread, false);
}

uint32_t Lives::share(const SampledThread& thread, bool is_another) noexcept {
  SampledThread shared = thread;
  shared.id = 0, shared.is_another = is_another;
  shared.hash = is_another ? 1 : 0;
  for (char c : shared.name) shared.hash = mix(shared.hash * 256 + static_cast<unsigned char>(c));
  uint32_t known = threads_.find(shared.hash, [&](const SampledThread& row) {
    return row.id == 0 && row.is_another == is_another && strncmp(row.name, shared.name, sizeof row.name) == 0;
  });
  return known != 0 ? known : threads_.add(shared, kMostThreads);
}

}  // namespace hm
