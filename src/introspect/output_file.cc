#include "introspect/output_file.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/option_parser.h"
#include "base/process.h"
#include "base/report.h"
#include "base/system_call.h"

namespace hm {
namespace {

class FileName {
 public:
  explicit FileName(const char* pattern) noexcept {
    for (; *pattern != '\0'; ++pattern) {
      if (pattern[0] == '%' && pattern[1] == 'p') add_number(id_of_process());
      else add(*pattern);
      if (pattern[0] == '%' && (pattern[1] == 'p' || pattern[1] == '%')) ++pattern;
    }
  }
  // Null if it is too long.
  const char* get() const noexcept { return used_ < sizeof name_ ? name_ : nullptr; }

 private:
  void add(char c) noexcept {
    if (used_ < sizeof name_ - 1) name_[used_] = c;
    ++used_;
  }
  void add_number(uint64_t number) noexcept {
    if (number >= 10) add_number(number / 10);
    add(static_cast<char>('0' + number % 10));
  }
  char name_[2 * kMaxPath] = {};
  size_t used_ = 0;
};

}  // namespace

void complain_of_output(const char* option, const char* name) noexcept {
  FdWriter(STDERR_FILENO) << kLibraryName << ": cannot write HMALLOC_" << option << "=" << name << "\n";
}

int open_output(const char* option, const char* name, int flags) noexcept {
  FileName file(name);
  long fd = -1;
  if (file.get() != nullptr)
    fd = system_call(SYS_openat, AT_FDCWD, system_call_argument(file.get()), O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0644);
  if (fd < 0) complain_of_output(option, name);
  return static_cast<int>(fd);
}

}  // namespace hm
