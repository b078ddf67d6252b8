// Makes a trace of a spool: addresses become numbered blocks, and the threads' records get one order.
#pragma once

#include <filesystem>

#include "spool.h"
#include "trace.h"

namespace hm::trace {

// A mapped spool; its file is removed together with this.  Its process, if still alive, stops recording.
class Spool {
 public:
  explicit Spool(const std::filesystem::path& path);
  ~Spool();
  Spool(Spool&& other) noexcept;
  Spool& operator=(Spool&& other) noexcept;

  const SpoolHeader& header() const { return *header_; }
  // The chunks of each thread, in the order in which it filled them.
  std::vector<std::vector<const Chunk*>> chunks() const;

 private:
  uint64_t chunk_at(uint64_t offset, uint64_t end) const;

  std::filesystem::path path_;
  int file_ = -1;
  SpoolHeader* header_ = nullptr;
  uint64_t size_ = 0;
};

// Adds all events to the writer.
Header pack(const Spool& spool, Writer& writer);

}  // namespace hm::trace
