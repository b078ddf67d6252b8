#include "engine/checkpoint_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <utility>

#include "pdes/options.h"
#include "pdes/random.h"

namespace pdes {
namespace {

constexpr char kMagic[8] = {'H', 'M', 'P', 'D', 'E', 'S', 'C', 'P'};
constexpr std::uint64_t kVersion = 6;  // on a machine of the other byte order it is another number

struct Preamble {
  char magic[sizeof kMagic];
  std::uint64_t version;
};
struct BlockHead {
  std::uint64_t size, checksum;
};
static_assert(sizeof(Preamble) == 16 && sizeof(BlockHead) == 16);

// Each step is bijective, in the sum and in the word: a change within one word never goes unnoticed.
std::uint64_t checksum(std::uint64_t number, std::span<const std::byte> bytes) noexcept {
  std::uint64_t sum = mix(number + 1) ^ bytes.size();
  while (!bytes.empty()) {
    std::uint64_t word = 0;
    const std::size_t size = std::min(bytes.size(), sizeof word);
    std::memcpy(&word, bytes.data(), size);
    sum = mix((sum ^ word) + 0x9e3779b97f4a7c15);
    bytes = bytes.subspan(size);
  }
  return sum;
}

class File {
 public:
  File(std::string path, int flags) : path_(std::move(path)), fd_(open(path_.c_str(), flags | O_CLOEXEC, 0666)) {
    if (fd_ < 0) fail((flags & O_CREAT) != 0 ? "cannot be written" : "cannot be read");
  }
  ~File() {
    if (fd_ >= 0) ::close(fd_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  void write(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const ssize_t done = ::write(fd_, bytes.data(), bytes.size());
      if (done < 0 && errno != EINTR) fail("cannot be written");
      if (done > 0) bytes = bytes.subspan(static_cast<std::size_t>(done));
    }
  }
  // Returns how much there was.
  std::size_t read(std::span<std::byte> bytes) {
    std::size_t all = 0;
    while (all < bytes.size()) {
      const ssize_t done = ::read(fd_, bytes.data() + all, bytes.size() - all);
      if (done < 0 && errno != EINTR) fail("cannot be read");
      if (done == 0) break;
      if (done > 0) all += static_cast<std::size_t>(done);
    }
    return all;
  }
  struct stat status() {
    struct stat found{};
    if (fstat(fd_, &found) != 0) fail("cannot be read");
    return found;
  }
  void to_disk() {
    if (fsync(fd_) != 0) fail("cannot be written");
  }
  void close() {
    if (::close(std::exchange(fd_, -1)) != 0) fail("cannot be written");
  }

 private:
  [[noreturn]] void fail(const char* what) const { throw Error(path_ + " " + what + ": " + std::strerror(errno)); }
  std::string path_;
  int fd_;
};

// Devices are written in place: there is no old checkpoint to keep, and no new file should take their name.
bool in_place(const std::string& path) {
  struct stat found{};
  if (stat(path.c_str(), &found) != 0 || S_ISREG(found.st_mode)) return false;
  if (!S_ISCHR(found.st_mode)) throw Error(path + " cannot be written: it is no regular file");
  return true;
}

constexpr int kToWrite = O_WRONLY | O_CREAT | O_TRUNC;

std::string beside(const std::string& path) { return path + ".new"; }

template <class T>
std::span<const std::byte> bytes_of(const T& value) noexcept {
  return std::as_bytes(std::span(&value, 1));
}

void write_blocks(File& file, std::span<const ByteBlock> blocks) {
  Preamble preamble{{}, kVersion};
  std::memcpy(preamble.magic, kMagic, sizeof kMagic);
  file.write(bytes_of(preamble));
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    file.write(bytes_of(BlockHead{blocks[i].size(), checksum(i, blocks[i])}));
    file.write(blocks[i]);
  }
}

void replace(const std::string& path, std::span<const ByteBlock> blocks) {
  File file(beside(path), kToWrite);
  write_blocks(file, blocks);
  file.to_disk();
  file.close();
  if (std::rename(beside(path).c_str(), path.c_str()) != 0)
    throw Error(path + " cannot be written: " + std::strerror(errno));
  const std::size_t slash = path.rfind('/');
  File(slash == std::string::npos ? "." : path.substr(0, slash + 1), O_RDONLY | O_DIRECTORY).to_disk();
}

}  // namespace

void write_checkpoint_file(const std::string& path, std::span<const ByteBlock> blocks) {
  if (in_place(path)) {
    File file(path, kToWrite);
    write_blocks(file, blocks);
    return file.close();
  }
  try {
    replace(path, blocks);
  } catch (...) {
    unlink(beside(path).c_str());
    throw;
  }
}

void try_checkpoint_file(const std::string& path) {
  if (in_place(path)) {
    const File file(path, kToWrite);
    return;
  }
  const File file(beside(path), kToWrite);
  unlink(beside(path).c_str());
}

ByteBlock read_file(const std::string& path) {
  File file(path, O_RDONLY | O_NONBLOCK);
  const struct stat status = file.status();
  if (!S_ISREG(status.st_mode)) throw Error(path + " cannot be read: it is no regular file");
  ByteBlock bytes(static_cast<std::size_t>(status.st_size));
  bytes.resize(file.read(bytes));
  return bytes;
}

std::vector<std::span<const std::byte>> blocks_of(std::span<const std::byte> file, const std::string& path) {
  Preamble preamble{};
  if (file.size() >= sizeof preamble) std::memcpy(&preamble, file.data(), sizeof preamble);
  if (std::memcmp(preamble.magic, kMagic, sizeof kMagic) != 0) throw Error(path + " is no checkpoint");
  if (preamble.version != kVersion)
    throw Error(path + " is a checkpoint of version " + std::to_string(preamble.version) + ", not " +
                std::to_string(kVersion));
  std::vector<std::span<const std::byte>> blocks;
  for (auto left = file.subspan(sizeof preamble); !left.empty();) {
    BlockHead head{};
    if (left.size() >= sizeof head) std::memcpy(&head, left.data(), sizeof head);
    if (left.size() < sizeof head || head.size > left.size() - sizeof head) throw Error(path + " is damaged: it ends early");
    blocks.push_back(left.subspan(sizeof head, static_cast<std::size_t>(head.size)));
    if (checksum(blocks.size() - 1, blocks.back()) != head.checksum) throw Error(path + " is damaged: a checksum is wrong");
    left = left.subspan(sizeof head + blocks.back().size());
  }
  if (blocks.empty()) throw Error(path + " is damaged: it ends early");
  return blocks;
}

}  // namespace pdes
