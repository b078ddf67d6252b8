#include "profile/mappings.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/syscall.h>

#include <algorithm>

#include "base/system_call.h"

namespace hm {
namespace {

long open_to_read(const char* path) noexcept {
  return system_call(SYS_openat, AT_FDCWD, system_call_argument(path), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
}

bool read_at(long file, size_t offset, void* to, size_t bytes) noexcept {
  long n = system_call(SYS_pread64, file, system_call_argument(to), static_cast<long>(bytes), static_cast<long>(offset));
  return n == static_cast<long>(bytes);
}

constexpr size_t kMostNotes = 64 * kKiB;

// In one segment of notes.
size_t find_build_id(long file, size_t offset, size_t end, std::span<uint8_t> to) noexcept {
  ElfW(Nhdr) note;
  while (offset + sizeof note <= end && read_at(file, offset, &note, sizeof note)) {
    size_t name = offset + sizeof note, content = name + align_up(note.n_namesz, 4);
    char owner[4] = {};
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof owner && read_at(file, name, owner, sizeof owner) &&
        owner[0] == 'G' && owner[1] == 'N' && owner[2] == 'U') {
      size_t bytes = std::min<size_t>(note.n_descsz, to.size());
      return read_at(file, content, to.data(), bytes) ? bytes : 0;
    }
    offset = content + align_up(note.n_descsz, 4);
  }
  return 0;
}

size_t build_id_of(const char* path, std::span<uint8_t> to) noexcept {
  if (path[0] != '/') return 0;
  long file = open_to_read(path);
  if (file < 0) return 0;
  size_t bytes = 0;
  ElfW(Ehdr) head;
  ElfW(Phdr) segment;
  if (read_at(file, 0, &head, sizeof head) && head.e_ident[0] == 0x7f && head.e_phentsize == sizeof segment) {
    for (size_t i = 0; i < head.e_phnum && bytes == 0; ++i)
      if (read_at(file, head.e_phoff + i * sizeof segment, &segment, sizeof segment) && segment.p_type == PT_NOTE)
        bytes = find_build_id(file, segment.p_offset, segment.p_offset + std::min<size_t>(segment.p_filesz, kMostNotes), to);
  }
  system_call(SYS_close, file);
  return bytes;
}

}  // namespace

// That of a process is the one of its first thread, and empty once that thread has ended; then this thread's has the same.
// Not at once: an emulator of processes (qemu-user) shows the program's mappings in the first, and its own in the other.
Mappings::Mappings() noexcept : file_(open_to_read("/proc/self/maps")) {
  if (fill()) return;
  close();
  file_ = open_to_read("/proc/thread-self/maps");
}
Mappings::~Mappings() { close(); }

void Mappings::close() noexcept {
  if (file_ >= 0) system_call(SYS_close, file_);
}

bool Mappings::fill() noexcept {
  long n = file_ < 0 ? 0 : system_call(SYS_read, file_, system_call_argument(buffer_), sizeof buffer_);
  if (n <= 0) return false;
  used_ = 0, read_ = static_cast<size_t>(n);
  return true;
}

int Mappings::get() noexcept {
  if (used_ == read_ && !fill()) return -1;
  return static_cast<unsigned char>(buffer_[used_++]);
}

// Up to the first other character, which becomes c.
uintptr_t Mappings::hexadecimal(int& c) noexcept {
  uintptr_t number = 0;
  for (c = get();; c = get()) {
    if (c >= '0' && c <= '9') number = number * 16 + static_cast<uintptr_t>(c - '0');
    else if (c >= 'a' && c <= 'f') number = number * 16 + static_cast<uintptr_t>(c - 'a' + 10);
    else return number;
  }
}

// "start-end perms offset device inode   file".
bool Mappings::next(Mapping& out) noexcept {
  for (int c = 0; c != -1;) {
    out.start = hexadecimal(c);
    out.end = hexadecimal(c);
    bool executable = false;
    for (c = get(); c != ' ' && c != -1; c = get()) executable = executable || c == 'x';
    out.offset = hexadecimal(c);
    for (int column = 0; column < 2; ++column)
      for (c = get(); c != ' ' && c != '\n' && c != -1;) c = get();
    while (c == ' ') c = get();
    size_t length = 0;
    for (; c != '\n' && c != -1; c = get())
      if (length + 1 < sizeof out.file) out.file[length++] = static_cast<char>(c);
    out.file[length] = '\0';
    if (!executable || length == 0) continue;
    out.build_id_bytes = build_id_of(out.file, out.build_id);
    return true;
  }
  return false;
}

}  // namespace hm
