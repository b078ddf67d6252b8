#include "plan.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <vector>

#include "profile.h"
#include "trace.h"

namespace hm::trace {

static_assert(static_cast<int>(Step::kMalloc) == static_cast<int>(Kind::kMalloc) &&
              static_cast<int>(Step::kFree) == static_cast<int>(Kind::kFree));

// Builds the lists, in the process that reads the trace.
class Planner {
 public:
  explicit Planner(const std::filesystem::path& file) {
    Profile profile;
    profile.finish(read(file, [&](const Event& event) {
      profile.add(event);
      add(event);
    }));
    const Header& header = profile.header;
    if (header.operations() == 0) throw Failure(file.string() + ": no operations in it");
    if (header.blocks() >= Plan::kNoEpoch) throw Failure(file.string() + ": more than 4 billion blocks");
    uint64_t steps = 0;
    for (Thread& thread : threads_) {
      enter(thread, Plan::kNoEpoch);
      steps += thread.list.size();
    }
    numbers_ = {threads_.size(),
                participants_.size(),
                header.blocks(),
                steps,
                header.operations(),
                header.mallocs,
                header.frees,
                header.reallocs,
                header.requested,
                profile.max_in_use,
                profile.cross_thread_frees};
  }

  void write_to(int file) const {
    size_t bytes = Plan::size(numbers_);
    void* memory = ftruncate(file, static_cast<off_t>(bytes)) == 0
                       ? mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0)
                       : MAP_FAILED;
    if (memory == MAP_FAILED) throw Failure(std::string("no memory for the plan: ") + std::strerror(errno));
    *static_cast<Plan::Numbers*>(memory) = numbers_;
    Plan plan(memory);
    std::copy(participants_.begin(), participants_.end(), plan.participants_);
    uint64_t* begin = plan.begins_;
    *begin = 0;
    for (const Thread& thread : threads_) {
      std::copy(thread.list.begin(), thread.list.end(), plan.operations_ + *begin);
      begin[1] = begin[0] + thread.list.size();
      ++begin;
    }
  }

 private:
  struct Thread {
    std::vector<Operation> list;
    uint32_t epoch = Plan::kNoEpoch;
  };

  // A thread begins at the point that the most recently active thread had reached before its first operation.
  void add(const Event& event) {
    if (event.thread >= threads_.size()) {
      threads_.resize(event.thread + 1);
      if (event.thread > 0) push(threads_[last_thread_], Step::kSpawn, event.thread, 0);
    }
    last_thread_ = event.thread;
    Thread& thread = threads_[event.thread];
    auto epoch = static_cast<uint32_t>(events_++ / Plan::kEpochLength);
    if (epoch != thread.epoch) enter(thread, epoch);
    Operation& operation = push(thread, Step{static_cast<uint8_t>(event.kind)}, static_cast<uint32_t>(event.block),
                                static_cast<uint32_t>(event.old));
    operation.size = std::max<uint64_t>(event.size, 1) & ((uint64_t{1} << 48) - 1);  // malloc(0) might return null
    operation.alignment = std::max<uint8_t>(event.alignment, 3);                     // the minimum of posix_memalign
  }

  void enter(Thread& thread, uint32_t epoch) {
    push(thread, Step::kEpoch, epoch, thread.epoch);
    thread.epoch = epoch;
    if (epoch == Plan::kNoEpoch) return;
    participants_.resize(epoch + 1);
    ++participants_[epoch];
  }

  static Operation& push(Thread& thread, Step step, uint32_t block, uint32_t old) {
    return thread.list.emplace_back(
        Operation{.size = 0, .step = static_cast<uint8_t>(step), .alignment = 0, .block = block, .old = old});
  }

  Plan::Numbers numbers_{};
  std::vector<Thread> threads_;
  std::vector<uint32_t> participants_;
  uint32_t last_thread_ = 0;
  uint64_t events_ = 0;
};

size_t Plan::size(const Numbers& of) {
  return sizeof(Numbers) + (of.threads + 1) * sizeof(uint64_t) + of.steps * sizeof(Operation) + of.blocks * sizeof(void*) +
         of.epochs * 2 * sizeof(uint32_t);
}

Plan::Plan(void* memory)
    : numbers_(static_cast<Numbers*>(memory)),
      begins_(reinterpret_cast<uint64_t*>(numbers_ + 1)),
      operations_(reinterpret_cast<Operation*>(begins_ + numbers_->threads + 1)),
      blocks_(reinterpret_cast<std::atomic<void*>*>(operations_ + numbers_->steps)),
      waiting_(reinterpret_cast<std::atomic<uint32_t>*>(blocks_ + numbers_->blocks)),
      participants_(reinterpret_cast<uint32_t*>(waiting_ + numbers_->epochs)) {}

void Plan::reset() const {
  for (uint64_t epoch = 0; epoch < numbers_->epochs; ++epoch) waiting_[epoch] = participants_[epoch];
}

Plan Plan::read(const std::filesystem::path& file) {
  int shared = memfd_create("hmalloc-trace-plan", MFD_CLOEXEC);
  pid_t reader = shared < 0 ? -1 : fork();
  if (reader < 0) throw Failure(std::string("the trace cannot be read: ") + std::strerror(errno));
  if (reader == 0) _exit(guarded([&] { Planner(file).write_to(shared); }));
  int status = 0;
  waitpid(reader, &status, 0);
  if (WIFSIGNALED(status)) throw Failure(file.string() + ": reading it crashed: " + strsignal(WTERMSIG(status)));
  if (WEXITSTATUS(status) != 0) throw Failure("", WEXITSTATUS(status));
  auto bytes = static_cast<size_t>(lseek(shared, 0, SEEK_END));
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, shared, 0);
  close(shared);
  if (memory == MAP_FAILED) throw Failure(std::string("no memory for the plan: ") + std::strerror(errno));
  auto* pages = static_cast<volatile char*>(memory);
  for (size_t at = 0; at < bytes; at += 4096) pages[at] = pages[at];
  return Plan(memory);
}

}  // namespace hm::trace
