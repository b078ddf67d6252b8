// Programs whose live memory never exceeds some 2 MB, however long they run.  What an allocator takes from the system
// for them is its blowup.
//
// All of them run on threads that live as long as the pattern, one thread at a time: nothing depends on the scheduler.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace blowup {

inline constexpr size_t kThreads = 16;
inline constexpr size_t kLive = size_t{2} << 20;
inline constexpr size_t kRounds = 64;

// Threads that wait for something to do.
class Crew {
 public:
  Crew();
  ~Crew();
  // On that thread; returns when it is done.
  void on(size_t thread, std::function<void()> task);

 private:
  struct Member;
  std::vector<std::unique_ptr<Member>> members_;
};

struct Block {
  void* memory;
  size_t size;
};

// The program's blocks, and how many bytes they have been at most.
class Live {
 public:
  void allocate(size_t size);
  void free(size_t index);  // the place stays, empty
  void free_all();
  void forget_places() { blocks_.clear(); }
  size_t places() const { return blocks_.size(); }
  size_t most() const { return max_; }
  void replace(size_t index, size_t size);

 private:
  Block made(size_t size);
  std::vector<Block> blocks_;
  size_t now_ = 0, max_ = 0;
};

struct Pattern {
  const char* name;
  const char* what;
  void (*round)(size_t round, Crew& crew, Live& live, Live& kept);
};

extern const std::vector<Pattern> kPatterns;

}  // namespace blowup
