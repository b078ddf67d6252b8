// What code this process has mapped, and from which files: for whoever reads a profile in another process.
#pragma once
#include <span>

#include "base/sizes.h"

namespace hm {

struct Mapping {
  uintptr_t start = 0, end = 0, offset = 0;
  char file[4096] = {};  // "[vdso]" is one too
  uint8_t build_id[32] = {};
  size_t build_id_bytes = 0;  // 0: it has none, or the file is no longer there
};

class Mappings {
 public:
  Mappings() noexcept;
  ~Mappings();
  Mappings(const Mappings&) = delete;
  Mappings& operator=(const Mappings&) = delete;
  // The next one with code in it, by address.  False: there is none.
  bool next(Mapping& out) noexcept;

 private:
  bool fill() noexcept;  // the buffer, with what comes next; false: nothing does
  void close() noexcept;
  int get() noexcept;  // the next byte of the file, or -1
  uintptr_t hexadecimal(int& c) noexcept;

  long file_;
  size_t used_ = 0, read_ = 0;
  char buffer_[1024];
};

}  // namespace hm
