// A trace: a program's calls of its allocator, in one order in which every block is made before it ends.
//
// The file is two lines of text and one zstd frame:
//   hmalloc trace 1
//   {"program": ..., "mallocs": ...}     the Header
//   events, each: a byte (kind, and kOtherThread), [thread], time since the last event, and then
//     malloc, calloc    size
//     aligned           size, logarithm of the alignment
//     realloc           how many blocks ago the old block was made, size
//     free              how many blocks ago the block was made
// as varints.  Blocks are numbered as they are made; the number itself need not be written.
#pragma once

#include <zstd.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

namespace hm::trace {

// One line for the user, and the exit code.
struct Failure : std::runtime_error {
  explicit Failure(const std::string& message, int exit_code = 1) : std::runtime_error(message), code(exit_code) {}
  int code;
};

// Runs a command; if it fails, prints why in one line.  Returns the exit code.
int guarded(const std::function<void()>& command);

enum class Kind : uint8_t { kMalloc, kCalloc, kAligned, kRealloc, kFree };
inline constexpr uint8_t kKinds = 5;

struct Event {
  Kind kind = Kind::kMalloc;
  uint8_t alignment = 0;  // its logarithm to base 2; kAligned only
  uint32_t thread = 0;    // numbered in the order in which they begin
  uint64_t time = 0;      // since the first event, in the header's unit
  uint64_t block = 0;     // the one made, or ended by free
  uint64_t old = 0;       // the one ended by realloc
  uint64_t size = 0;      // requested

  bool makes() const { return kind != Kind::kFree; }
  bool ends() const { return kind == Kind::kFree || kind == Kind::kRealloc; }
  uint64_t ended() const { return kind == Kind::kFree ? block : old; }
};

struct Header {
  std::string program;
  std::vector<std::string> command;
  std::string allocator;  // of the recorded run
  int pid = 0;
  int parent = 0;
  std::string unit = "ns";  // of time: ns, or operations if no clock was read
  uint32_t threads = 0;
  uint64_t duration = 0;
  uint64_t mallocs = 0;  // all calls that make a block and end none
  uint64_t frees = 0;
  uint64_t reallocs = 0;
  uint64_t requested = 0;      // bytes, of all calls
  uint64_t foreign_frees = 0;  // of blocks made before the recording or outside it; they are no events
  uint64_t implied_frees = 0;  // freed outside the recording: their address was handed out again
  std::string stopped;         // why the record ends before the program did

  uint64_t operations() const { return mallocs + frees + reallocs; }
  uint64_t blocks() const { return mallocs + reallocs; }
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Header, program, command, allocator, pid, parent, unit, threads, duration, mallocs, frees,
                                   reallocs, requested, foreign_frees, implied_frees, stopped)

// Updates the header's counts with each event.
void count(Header& header, const Event& event);

// Collects events in compressed form.
class Writer {
 public:
  void add(const Event& event);                                            // blocks numbered in order, time never decreasing
  uint64_t save(const std::filesystem::path& path, const Header& header);  // returns the size of the file

 private:
  void put(uint64_t number);
  void compress(ZSTD_EndDirective how);

  struct Free {
    void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
  };
  std::unique_ptr<ZSTD_CCtx, Free> zstd_{ZSTD_createCCtx()};
  std::string pending_;
  std::string compressed_;
  Event last_;
  uint64_t made_ = 0;
};

using Visitor = std::function<void(const Event&)>;

// Reads a trace, or a .rep file.  The visitor can rely on what it gets: blocks exist, and end at most once.
Header read(const std::filesystem::path& path, const Visitor& visit);

// rep.cc: the format of the malloc lab.
Header read_rep(const std::filesystem::path& path, const Visitor& visit);

}  // namespace hm::trace
