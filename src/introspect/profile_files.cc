#include "introspect/profile_files.h"

#include <fcntl.h>
#include <sys/syscall.h>

#include "base/clock.h"
#include "base/lock.h"
#include "base/process.h"
#include "base/system_call.h"
#include "introspect/output_file.h"
#include "profile/profile.h"
#include "profile/samples.h"

namespace hm {
namespace {

constexpr uint64_t kLookEveryMs = 100;
constexpr const char kPeak[] = ".peak", kUnfinishedPeak[] = ".peak.new";

constinit Lock writing;
constinit bool last_is_written = false;                    // under it
constinit bool peak_fails = false, trigger_stays = false;  // and one line has said so; under it, too
// Relaxed: hints; both are written under the lock.
constinit std::atomic<uint64_t> last_look_ms{0}, written_peak{0};
// Whose files these are: the process that looks first, for a child of vfork() shares this but is another.  Relaxed: it is a
// number alone.
constinit std::atomic<uint32_t> process{0};

bool write_to(int fd) noexcept {
  int error = write_profile(fd);
  system_call(SYS_close, fd);
  return error == 0;
}

bool write_profile_file(int flags) noexcept {
  int fd = open_output("PROFILE_FILE", options.profile_file, O_TRUNC | flags);
  if (fd < 0) return false;
  bool written = write_to(fd);
  if (!written) complain_of_output("PROFILE_FILE", options.profile_file);
  return written;
}

bool is_new_peak(uint64_t held) noexcept {
  uint64_t last = written_peak.load(std::memory_order_relaxed);
  return held > last + last / 16 + kMiB;  // a few writes for each doubling
}

// In the middle of what the program does nobody waits for a reader.
constexpr int kDoNotWait = O_NONBLOCK;

// Beside, and renamed when it is whole: the program may end at any time.
void write_peak(uint64_t held) noexcept {
  written_peak.store(held, std::memory_order_relaxed);
  int fd = open_output("PROFILE_FILE", options.profile_file, O_TRUNC | kDoNotWait, kUnfinishedPeak);
  peak_fails = fd < 0;
  if (peak_fails || (write_to(fd) && rename_output(options.profile_file, kUnfinishedPeak, kPeak))) return;
  peak_fails = true;
  complain_of_output("PROFILE_FILE", options.profile_file, kPeak);
  remove_output(options.profile_file, kUnfinishedPeak);
}

// That it is gone says that the profile is there.
void answer_trigger() noexcept {
  trigger_stays = !write_profile_file(kDoNotWait);
  if (trigger_stays || remove_output(options.profile_trigger)) return;
  trigger_stays = true;  // each look would write one
  complain_of_output("PROFILE_TRIGGER", options.profile_trigger);
}

bool is_the_process() noexcept {
  uint32_t me = id_of_process(), none = 0;
  return process.compare_exchange_strong(none, me, std::memory_order_relaxed) || none == me;
}

}  // namespace

void write_last_profile() noexcept {
  LockGuard guard(writing);
  write_profile_file(0);
  last_is_written = true;
}

void look_for_reasons() noexcept {
  uint64_t now = os::now_ms(), held = samples.held_bytes();
  bool peak = options.profile_peak != 0 && is_new_peak(held);
  bool look = options.profile_trigger[0] != '\0' && now >= last_look_ms.load(std::memory_order_relaxed) + kLookEveryMs;
  if ((!peak && !look) || !is_the_process()) return;
  TryLockGuard guard(writing);
  if (!guard.holds() || last_is_written) return;  // whoever holds it is writing one
  if (peak && !peak_fails && is_new_peak(held)) write_peak(held);
  if (!look || trigger_stays) return;
  last_look_ms.store(now, std::memory_order_relaxed);
  if (output_exists(options.profile_trigger)) answer_trigger();
}

void profile_files_after_fork_in_child(uint32_t before) noexcept {
  repair_after_fork(writing, before, [] {});
  last_is_written = false;
  process.store(0, std::memory_order_relaxed);
  // A peak of its own is above what it has of its parent.
  written_peak.store(samples.held_bytes(), std::memory_order_relaxed);
}

}  // namespace hm
