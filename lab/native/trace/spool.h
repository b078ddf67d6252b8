// The spool: the file that the recorder inside a process writes, and `hmalloc-trace record` packs when it has ended.
//
// It is mapped shared, so every record belongs to the kernel's page cache as soon as it is written: exit, _exit, exec,
// a crash or SIGKILL lose none.  After the header come chunks.  A chunk belongs to one thread, which alone writes it; a
// thread's chunks are in the file in the order in which it filled them.
//
// I1  Records [0, used) of a chunk are complete, and in the thread's own order.
// I2  The stamps of a thread never decrease, and across threads they never contradict the order of calls: a block is
//     stamped after the call that made it returned and before the call that ends it, so at any time at most one
//     block lives at an address.
// I3  kReallocNew directly follows its kReallocOld: calls of one thread do not nest (recorder.cc).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace hm::trace {

inline constexpr const char* kFolderVariable = "HM_TRACE_SPOOLS";  // the folder for the spools
inline constexpr const char* kLimitVariable = "HM_TRACE_LIMIT";    // the maximum size of a spool in bytes

enum class Call : uint8_t {
  kMalloc = 1,
  kCalloc,
  kAligned,
  kFree,
  kReallocOld,  // the block passed to realloc, stamped before the call
  kReallocNew,  // the block that it returned (0: none), stamped after the call
};

struct Record {
  uint64_t time;  // nanoseconds of CLOCK_MONOTONIC
  uint64_t address;
  uint64_t size : 48;
  uint64_t call : 8;
  uint64_t alignment : 8;  // its logarithm to base 2; kAligned only
};
static_assert(sizeof(Record) == 24);

struct Chunk {
  static constexpr uint32_t kMagic = 0x6b6e6863;

  uint32_t magic;
  uint32_t thread;  // from 1, in the order of their first calls
  uint32_t pages;   // of the chunk, in units of SpoolHeader::page
  std::atomic<uint32_t> used;

  Record* records() { return reinterpret_cast<Record*>(this + 1); }
  const Record* records() const { return reinterpret_cast<const Record*>(this + 1); }
  static uint32_t capacity(size_t bytes) { return static_cast<uint32_t>((bytes - sizeof(Chunk)) / sizeof(Record)); }
};

struct SpoolHeader {
  static constexpr uint64_t kMagic = 0x31'6c6f'6f70'7368;

  uint64_t magic;
  uint64_t started;  // the stamp of the beginning
  uint32_t page;     // the machine's page: of the header, and the unit of the chunks
  int32_t pid;
  int32_t parent;
  int32_t padding;
  std::atomic<uint64_t> next;  // where the next chunk will begin
  std::atomic<uint32_t> threads;
  std::atomic<int32_t> stop_error;   // why recording ended before the process: an errno; EFBIG: the limit
  std::atomic<uint64_t> stopped_at;  // later stamps do not count, because some threads could not record; 0: no
  char program[512];
  char allocator[512];
  char command[1024];  // arguments, each ended by a zero
};
static_assert(sizeof(SpoolHeader) <= 4096);

}  // namespace hm::trace
