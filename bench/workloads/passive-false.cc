// passive-false (Hoard, section 5.3; HMalloc, section 4.4 and Table 1): after its free, does a thread get back the part
// of a cache line of which others have parts too?  In every round one thread allocates a block of 8 bytes for each of
// the workers; a worker frees it, allocates a block of its own, writes each of its bytes 8 times and frees it.  What is
// handed over is shared memory, what a worker allocates is local: half and half.  Nanoseconds of wall time per malloc
// and free over all workers; two to a round.
//
//   passive-false [--threads 1] [--size 8] [--rounds 10000000] [--writes 8]
//
// threads: workers, not counting the thread that allocates for them.  That thread is at most one round ahead, so that
// the parts of a line are written at about the same time.  How it misleads: with the paper's 8 writes the figure is
// that of the hand-over, which no allocator can avoid: some hundred nanoseconds, or microseconds if there are more
// threads than cores.  More writes show more of the allocator.
#include "common.h"
#include "false_sharing.h"
#include "mailbox.h"

namespace {

using namespace bench;

struct Setting {
  std::size_t size;
  std::uint32_t rounds;
  std::uint32_t writes;
};

using Mailboxes = std::vector<Mailbox<void*>>;

void allocate_for_all(const Setting& setting, Mailboxes& mailboxes) {
  for (std::uint32_t round = 0; round < setting.rounds; ++round) {
    for (auto& mailbox : mailboxes) {
      void*& block = mailbox.to_fill();
      block = shared::allocate_touched(setting.size);
      mailbox.send();
    }
  }
}

void work(const Setting& setting, Mailbox<void*>& mailbox) {
  for (std::uint32_t round = 0; round < setting.rounds; ++round) {
    void* handed_over = mailbox.received();
    mailbox.give_back();
    shared::release(handed_over, setting.size);
    void* own = local::allocate(setting.size);
    write_often(own, setting.size, setting.writes);
    local::release(own, setting.size);
  }
}

}  // namespace

int main(int count, char** values) {
  Arguments arguments(count, values);
  unsigned threads = arguments.threads();
  Setting setting{arguments.count("size", 8), arguments.count("rounds", 10'000'000), arguments.count("writes", 8)};
  arguments.finish();

  Mailboxes mailboxes(threads);
  Span span = run_workers(threads + 1, false, [&](unsigned index) {
    if (index == threads) allocate_for_all(setting, mailboxes);
    else work(setting, mailboxes[index]);
  });
  report("passive-false", threads, 2.0 * setting.rounds * threads, span);
}
