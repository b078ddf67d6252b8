// A thread that does what it is told while the one that tells waits; and a last wish, when it ends.
#pragma once
#include <pthread.h>

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace fuzz {

class Hand {
 public:
  ~Hand() { end(false); }
  void call(const std::function<void()>& job) {
    if (!thread_.joinable()) thread_ = std::thread([this] { serve(); });
    std::unique_lock guard(lock_);
    job_ = &job;
    changed_.notify_all();
    changed_.wait(guard, [this] { return job_ == nullptr; });
  }
  bool is_alive() const { return thread_.joinable(); }
  // late: a destructor of thread-specific data allocates, rounds after the allocator has heard of the end.
  void end(bool late);

 private:
  void serve() {
    for (std::unique_lock guard(lock_);;) {
      changed_.wait(guard, [this] { return job_ != nullptr; });
      if (!*job_) return void(job_ = nullptr);
      (*job_)();
      job_ = nullptr;
      changed_.notify_all();
    }
  }
  std::mutex lock_;
  std::condition_variable changed_;
  const std::function<void()>* job_ = nullptr;
  std::thread thread_;
};

}  // namespace fuzz
