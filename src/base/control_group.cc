#include "base/control_group.h"

#include <fcntl.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cstring>
#include <span>

#include "base/system_call.h"

namespace hm {
namespace {

// Of the file, as much as fits; 0 bytes if there is none.
size_t read_file(const char* path, std::span<char> text) noexcept {
  long file = system_call(SYS_openat, AT_FDCWD, system_call_argument(path), O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  size_t used = 0;
  while (used < text.size()) {
    long n = system_call(SYS_read, file, system_call_argument(&text[used]), static_cast<long>(text.size() - used));
    if (n <= 0) break;
    used += static_cast<size_t>(n);
  }
  system_call(SYS_close, file);
  return used;
}

constexpr size_t kNone = SIZE_MAX;

// "max", and what version 1 writes for it, are no limits.
size_t limit_in(const char* path) noexcept {
  char text[32];
  size_t length = read_file(path, text), bytes = 0, digits = 0;
  for (; digits < length && text[digits] >= '0' && text[digits] <= '9' && bytes < SIZE_MAX / 64; ++digits)
    bytes = bytes * 10 + static_cast<size_t>(text[digits] - '0');
  return digits > 0 && bytes < SIZE_MAX / 64 ? bytes : kNone;
}

class Path {
 public:
  Path& add(const char* part, size_t length) noexcept {
    fits_ = fits_ && length < sizeof text_ - used_;
    if (fits_) memcpy(text_ + used_, part, length);
    if (fits_) used_ += length;
    return *this;
  }
  Path& add(const char* part) noexcept { return add(part, strlen(part)); }
  size_t limit() noexcept {
    text_[used_] = '\0';
    return fits_ ? limit_in(text_) : kNone;
  }

 private:
  char text_[1024];
  size_t used_ = 0;
  bool fits_ = true;
};

// Of the group and those above it.  A container may be told the path that its host sees, and find only the root.
size_t least_limit(const char* root, const char* hierarchy, const char* group, size_t length, const char* file) noexcept {
  for (size_t least = kNone;;) {
    least = std::min(least, Path().add(root).add(hierarchy).add(group, length).add(file).limit());
    if (length == 0) return least;
    do --length;
    while (length > 0 && group[length] != '/');
  }
}

bool names_memory(const char* controllers, const char* end) noexcept {
  constexpr char kMemory[] = "memory";
  constexpr size_t kLength = sizeof kMemory - 1;
  while (controllers < end) {
    const char* comma = std::find(controllers, end, ',');
    if (static_cast<size_t>(comma - controllers) == kLength && strncmp(controllers, kMemory, kLength) == 0) return true;
    controllers = comma + 1;
  }
  return false;
}

// A line is "number:controllers:/group".  That of version 2 names no controllers.
size_t limit_by(const char* line, const char* end, const char* root) noexcept {
  const char* first = std::find(line, end, ':');
  const char* second = first == end ? end : std::find(first + 1, end, ':');
  if (second == end) return kNone;
  const char* group = second + 1;
  auto length = static_cast<size_t>(end - group);
  if (second == first + 1) return least_limit(root, "", group, length, "/memory.max");
  return names_memory(first + 1, second) ? least_limit(root, "/memory", group, length, "/memory.limit_in_bytes") : kNone;
}

}  // namespace

size_t control_group_limit(const char* membership, const char* root) noexcept {
  char text[4096];
  const char *line = text, *text_end = text + read_file(membership, text);
  size_t least = kNone;
  while (line < text_end) {
    const char* end = std::find(line, text_end, '\n');
    least = std::min(least, limit_by(line, end, root));
    line = end + (end < text_end);
  }
  return least == kNone ? 0 : least;
}

}  // namespace hm
