#include "verdict.h"

#include <hmalloc/hmalloc.h>
#include <sys/wait.h>

#include <cinttypes>
#include <csignal>
#include <cstdio>

#include "blocks.h"
#include "core/superblock_pool.h"
#include "threads/registry.h"

namespace stress {

void examine_everything() {
  if (!hm::superblock_pool.is_valid()) fail("a queue of superblocks is not valid");
  if (!hm::slice_pool.is_valid()) fail("the slice pool is not valid");
  if (!hm::registry.is_valid()) fail("a heap without a thread is not valid");
  if (hm::have_heap() && !hm::my_heap()->is_valid()) fail("the main thread's heap is not valid");
  hm::slice_pool.for_each([](hm::Slice& first) {
    if (first.kind() != hm::SliceKind::kLarge && !hm::Superblock::of(first).is_valid())
      fail("a superblock is not valid", &first);
  });
}

void expect_nothing_held() {
  hm_collect();
  hm_stats stats;
  hm_stats_get(&stats);
  if (stats.allocated == 0) return;
  fprintf(stderr, "stress: %" PRIu64 " bytes are lost\n", stats.allocated);
  hm_stats_print(2, 0);
  fail("blocks are lost");
}

void require_good_end(pid_t child, const char* whose) {
  int status = 0;
  pid_t ended = waitpid(child, &status, 0);
  if (ended == child && status == 0) return;
  fprintf(stderr, "stress: %s ended with status %x\n", whose, static_cast<unsigned>(status));
  fail(ended == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM ? "it hangs" : "it failed");
}

}  // namespace stress
