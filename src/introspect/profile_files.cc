#include "introspect/profile_files.h"

#include <fcntl.h>
#include <sys/syscall.h>

#include "base/clock.h"
#include "base/lock.h"
#include "base/system_call.h"
#include "introspect/output_file.h"
#include "profile/profile.h"
#include "profile/samples.h"

namespace hm {
namespace {

constexpr uint64_t kLookEveryMs = 100;
constexpr const char kPeak[] = ".peak", kUnfinishedPeak[] = ".peak.new";

constinit Lock writing;
constinit bool last_is_written = false;  // under it
// Relaxed: hints; all are written under the lock.
constinit std::atomic<uint64_t> last_look_ms{0}, written_peak{0};
constinit std::atomic<bool> trigger_stays{false};  // it cannot be removed: each look would write a profile

bool write_to(int fd) noexcept {
  int error = write_profile(fd);
  system_call(SYS_close, fd);
  return error == 0;
}

void write_profile_file() noexcept {
  int fd = open_output("PROFILE_FILE", options.profile_file, O_TRUNC);
  if (fd >= 0 && !write_to(fd)) complain_of_output("PROFILE_FILE", options.profile_file);
}

bool is_new_peak(uint64_t held) noexcept {
  uint64_t last = written_peak.load(std::memory_order_relaxed);
  return held > last + last / 16 + kMiB;  // a few writes for each doubling
}

// Beside, and renamed when it is whole: the program may end at any time.
void write_peak(uint64_t held) noexcept {
  written_peak.store(held, std::memory_order_relaxed);
  int fd = open_output("PROFILE_FILE", options.profile_file, O_TRUNC, kUnfinishedPeak);
  if (fd < 0) return;
  if (!write_to(fd) || !rename_output(options.profile_file, kUnfinishedPeak, kPeak))
    complain_of_output("PROFILE_FILE", options.profile_file, kPeak);
}

// That it is gone says that the profile is there.
void answer_trigger() noexcept {
  write_profile_file();
  if (remove_output(options.profile_trigger)) return;
  complain_of_output("PROFILE_TRIGGER", options.profile_trigger);
  trigger_stays.store(true, std::memory_order_relaxed);
}

}  // namespace

void write_last_profile() noexcept {
  LockGuard guard(writing);
  write_profile_file();
  last_is_written = true;
}

void look_for_reasons() noexcept {
  uint64_t now = os::now_ms(), held = samples.held_bytes();
  bool peak = options.profile_peak != 0 && is_new_peak(held);
  bool look = options.profile_trigger[0] != '\0' && !trigger_stays.load(std::memory_order_relaxed) &&
              now >= last_look_ms.load(std::memory_order_relaxed) + kLookEveryMs;
  if (!peak && !look) return;
  TryLockGuard guard(writing);
  if (!guard.holds() || last_is_written) return;  // whoever holds it is writing one
  if (peak && is_new_peak(held)) write_peak(held);
  if (!look) return;
  last_look_ms.store(now, std::memory_order_relaxed);
  if (output_exists(options.profile_trigger)) answer_trigger();
}

void profile_files_after_fork_in_child(uint32_t before) noexcept {
  repair_after_fork(writing, before, [] {});
  last_is_written = false;
  written_peak.store(0, std::memory_order_relaxed);
}

}  // namespace hm
