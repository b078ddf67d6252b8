#include "profile/profile.h"

#include <cerrno>

#include "profile/pprof.h"
#include "profile/sampler.h"
#include "profile/stack_taker.h"
#include "profile/unwinder.h"

namespace hm {

int start_profile(size_t rate) noexcept {
  if (int error = prepare_stacks()) return error;
  sampler.start(rate);
  return 0;
}

void stop_profile() noexcept { sampler.stop(); }

int write_profile(int fd) noexcept {
  Snapshot snapshot;
  samples.take(snapshot);
  return snapshot.complete ? write_pprof(fd, snapshot) : ENOMEM;
}

void repair_profile(uint32_t before) noexcept {
  samples.repair(before);
  unwinder.repair(before);
  sampler.repair(before);
}

}  // namespace hm
