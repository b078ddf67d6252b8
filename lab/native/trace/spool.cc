#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "pack.h"

namespace hm::trace {
namespace {

uint64_t now() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
}

}  // namespace

Spool::Spool(const std::filesystem::path& path) : path_(path) {
  file_ = open(path.c_str(), O_RDWR | O_CLOEXEC);
  struct stat status{};
  if (file_ < 0 || fstat(file_, &status) != 0) throw Failure(path.string() + ": " + std::strerror(errno));
  size_ = static_cast<uint64_t>(status.st_size);
  void* memory =
      size_ < sizeof(SpoolHeader) ? MAP_FAILED : mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
  if (memory == MAP_FAILED) throw Failure(path.string() + ": not a spool");
  header_ = static_cast<SpoolHeader*>(memory);
  // A process that outlives the recording stops at its next chunk, instead of filling a file that nobody reads.
  uint64_t running = 0;
  if (header_->magic == SpoolHeader::kMagic) header_->stopped_at.compare_exchange_strong(running, now());
}

Spool::Spool(Spool&& other) noexcept { *this = std::move(other); }

Spool& Spool::operator=(Spool&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(file_, other.file_);
  std::swap(header_, other.header_);
  std::swap(size_, other.size_);
  return *this;
}

Spool::~Spool() {
  if (header_ == nullptr) return;
  munmap(header_, size_);
  close(file_);
  std::error_code ignored;
  std::filesystem::remove(path_, ignored);
}

// A chunk that was taken and never begun (no room, or the process was killed just then) is a hole; its length is not
// written either, so the next one is searched for page by page.
std::vector<std::vector<const Chunk*>> Spool::chunks() const {
  std::vector<std::vector<const Chunk*>> found;
  if (header_->magic != SpoolHeader::kMagic || header_->page == 0) return found;  // killed while it began
  uint64_t end = std::min<uint64_t>(size_, header_->next);
  for (uint64_t offset = header_->page; offset + header_->page <= end;) {
    uint64_t bytes = chunk_at(offset, end);
    if (bytes > 0) {
      auto* chunk = reinterpret_cast<const Chunk*>(reinterpret_cast<const char*>(header_) + offset);
      if (found.size() < chunk->thread) found.resize(chunk->thread);
      found[chunk->thread - 1].push_back(chunk);
    }
    offset += bytes > 0 ? bytes : header_->page;
  }
  return found;
}

// The length of the chunk; 0 if there is none.  Read from the file and not from memory: reading a hole in memory takes
// a page, and there may be none left.
uint64_t Spool::chunk_at(uint64_t offset, uint64_t end) const {
  alignas(Chunk) char bytes_read[sizeof(Chunk)];
  if (pread(file_, bytes_read, sizeof bytes_read, static_cast<off_t>(offset)) != sizeof bytes_read) return 0;
  auto* chunk = reinterpret_cast<const Chunk*>(bytes_read);
  uint64_t bytes = uint64_t{chunk->pages} * header_->page;
  bool is_whole = chunk->magic == Chunk::kMagic && bytes > 0 && offset + bytes <= end &&
                  chunk->used <= Chunk::capacity(bytes) && chunk->thread - 1 < header_->threads;
  return is_whole ? bytes : 0;
}

}  // namespace hm::trace
