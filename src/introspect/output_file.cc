#include "introspect/output_file.h"

#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "base/option_parser.h"
#include "base/process.h"
#include "base/report.h"
#include "base/system_call.h"

namespace hm {
namespace {

class FileName {
 public:
  explicit FileName(const char* pattern, Suffix suffix = {}) noexcept {
    for (; *pattern != '\0'; ++pattern) {
      if (pattern[0] == '%' && pattern[1] == 'p') add_number(id_of_process());
      else add(*pattern);
      if (pattern[0] == '%' && (pattern[1] == 'p' || pattern[1] == '%')) ++pattern;
    }
    for (; *suffix.text != '\0'; ++suffix.text) add(*suffix.text);
    if (suffix.number != 0) add_number(suffix.number);
  }
  bool fits() const noexcept { return used_ < sizeof name_; }
  long as_argument() const noexcept { return system_call_argument(name_); }

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

void complain_of_output(const char* option, const char* name, const char* suffix) noexcept {
  FdWriter(STDERR_FILENO) << kLibraryName << ": cannot write HMALLOC_" << option << "=" << name << suffix << "\n";
}

int open_output(const char* name, int flags, Suffix suffix) noexcept {
  FileName file(name, suffix);
  if (!file.fits()) return -1;
  constexpr int kAlways = O_WRONLY | O_CREAT | O_CLOEXEC | kDoNotWait;
  long fd = system_call(SYS_openat, AT_FDCWD, file.as_argument(), flags | kAlways, 0644);
  if (fd >= 0 && (flags & kDoNotWait) == 0) system_call(SYS_fcntl, fd, F_SETFL, flags & O_APPEND);
  return static_cast<int>(fd);
}

bool output_exists(const char* name) noexcept {
  FileName file(name);
  return file.fits() && system_call(SYS_faccessat, AT_FDCWD, file.as_argument(), F_OK) == 0;
}

bool output_is_special(const char* name) noexcept {
  FileName file(name);
  struct stat found;
  return file.fits() && system_call(SYS_newfstatat, AT_FDCWD, file.as_argument(), system_call_argument(&found)) == 0 &&
         !S_ISREG(found.st_mode);
}

bool remove_output(const char* name, Suffix suffix) noexcept {
  FileName file(name, suffix);
  if (!file.fits()) return false;
  long error = system_call(SYS_unlinkat, AT_FDCWD, file.as_argument(), 0);
  return error == 0 || error == -ENOENT;
}

bool rename_output(const char* name, Suffix suffix, Suffix new_suffix) noexcept {
  FileName from(name, suffix), to(name, new_suffix);
  return from.fits() && to.fits() &&
         system_call(SYS_renameat2, AT_FDCWD, from.as_argument(), AT_FDCWD, to.as_argument(), 0) == 0;
}

}  // namespace hm
