#include "introspect/profile_files.h"

#include <sys/syscall.h>

#include "base/clock.h"
#include "base/system_call.h"
#include "introspect/while_running.h"
#include "profile/profile.h"
#include "profile/sampler.h"
#include "profile/samples.h"
#include "upkeep/background.h"

namespace hm {
namespace {

constexpr Suffix kPeak{".peak"}, kUnfinishedPeak{".peak.new"};

constinit OneWriter writer;
constinit Trigger trigger("PROFILE_TRIGGER", options.profile_trigger);
constinit bool peak_fails = false;                // and one line has said so; the writer's
constinit std::atomic<uint64_t> written_peak{0};  // the writer's; relaxed: a hint to others

bool write_to(int fd) noexcept {
  int error = write_profile(fd);
  system_call(SYS_close, fd);
  return error == 0;
}

bool write_profile_file(int flags) noexcept {
  int fd = open_output(options.profile_file, O_TRUNC | flags);
  bool written = fd >= 0 && write_to(fd);
  if (!written) complain_of_output("PROFILE_FILE", options.profile_file);
  return written;
}

bool is_new_peak(uint64_t held) noexcept {
  uint64_t last = written_peak.load(std::memory_order_relaxed);
  return held > last + last / 16 + kMiB;  // a few writes for each doubling
}

// Beside, and renamed when it is whole: the program may end at any time.
void write_peak(uint64_t held) noexcept {
  written_peak.store(held, std::memory_order_relaxed);
  int fd = open_output(options.profile_file, O_TRUNC | kDoNotWait, kUnfinishedPeak);
  if (fd >= 0 && write_to(fd) && rename_output(options.profile_file, kUnfinishedPeak, kPeak)) return;
  peak_fails = true;
  complain_of_output("PROFILE_FILE", options.profile_file, kPeak.text);
  if (fd >= 0) remove_output(options.profile_file, kUnfinishedPeak);
}

void answer(uint64_t now_ms) noexcept {
  trigger.look(now_ms, [] { return write_profile_file(kDoNotWait); });
}

// By any thread.  One that holds a lock of the allocator's would make others wait for the disk.
void look() noexcept {
  uint64_t now = os::now_ms();
  if (!trigger.is_due(now) || !sampler.has_profile() || holds_a_lock()) return;
  writer.while_running([=] {
    if (trigger.is_due(now)) answer(now);
  });
}

}  // namespace

void watch_for_profile_trigger() noexcept {
  if (!trigger.is_asked_for()) return;
  writer.is_the_process();
  background.watch(look, kLongestNap);
}

void write_last_profile() noexcept {
  writer.at_the_end([] { write_profile_file(0); });
}

void look_for_reasons() noexcept {
  uint64_t now = os::now_ms(), held = samples.held_bytes();
  bool peak = options.profile_peak != 0 && is_new_peak(held), ask = trigger.is_due(now);
  if (!peak && !ask) return;
  writer.while_running([=] {
    if (peak && !peak_fails && is_new_peak(held)) write_peak(held);
    if (ask) answer(now);
  });
}

void profile_files_after_fork_in_child(uint32_t before) noexcept {
  writer.after_fork_in_child(before);
  // A peak of its own is above what it has of its parent.
  written_peak.store(samples.held_bytes(), std::memory_order_relaxed);
}

}  // namespace hm
