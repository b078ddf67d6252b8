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
  int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
  struct stat status {};
  if (file < 0 || fstat(file, &status) != 0) throw Failure(path.string() + ": " + std::strerror(errno));
  size_ = static_cast<uint64_t>(status.st_size);
  void* memory = size_ < sizeof(SpoolHeader) ? MAP_FAILED
                                             : mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (memory == MAP_FAILED) throw Failure(path.string() + ": not a spool");
  header_ = static_cast<SpoolHeader*>(memory);
  // A process that outlives the recording stops at its next chunk, instead of filling a file that nobody sees.
  uint64_t running = 0;
  if (header_->magic == SpoolHeader::kMagic) header_->stopped_at.compare_exchange_strong(running, now());
}

Spool::Spool(Spool&& other) noexcept : path_(std::move(other.path_)), header_(other.header_), size_(other.size_) {
  other.header_ = nullptr;
}

Spool& Spool::operator=(Spool&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(header_, other.header_);
  std::swap(size_, other.size_);
  return *this;
}

Spool::~Spool() {
  if (header_ == nullptr) return;
  munmap(header_, size_);
  std::error_code ignored;
  std::filesystem::remove(path_, ignored);
}

// A chunk that was taken and never begun (no room, or the process was killed just then) is empty; its length is not
// written either, so the next one is looked for page by page.
std::vector<std::vector<const Chunk*>> Spool::chunks() const {
  std::vector<std::vector<const Chunk*>> found;
  if (header_->magic != SpoolHeader::kMagic || header_->page == 0) return found;  // killed while it was begun
  uint64_t end = std::min<uint64_t>(size_, header_->next);
  for (uint64_t offset = header_->page; offset + header_->page <= end;) {
    auto* chunk = reinterpret_cast<const Chunk*>(reinterpret_cast<const char*>(header_) + offset);
    uint64_t bytes = uint64_t{chunk->pages} * header_->page;
    bool is_begun = chunk->magic == Chunk::kMagic && bytes > 0 && offset + bytes <= end &&
                    chunk->used <= Chunk::capacity(bytes) && chunk->thread - 1 < header_->threads;
    if (is_begun) {
      if (found.size() < chunk->thread) found.resize(chunk->thread);
      found[chunk->thread - 1].push_back(chunk);
    }
    offset += is_begun ? bytes : header_->page;
  }
  return found;
}

}  // namespace hm::trace
