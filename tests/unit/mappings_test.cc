#include "profile/mappings.h"

#include <fcntl.h>
#include <sys/syscall.h>

#include <memory>

#include "support.h"

using namespace hm;

namespace {

bool code_of_this_test_is_found() {
  auto mapping = std::make_unique<Mapping>();
  auto here = reinterpret_cast<uintptr_t>(&code_of_this_test_is_found);
  for (Mappings all; all.next(*mapping);)
    if (mapping->start <= here && here < mapping->end) return mapping->file[0] == '/';
  return false;
}

bool first_thread_is_listed() {
  char byte;
  int file = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  bool listed = file >= 0 && read(file, &byte, 1) == 1;
  close(file);
  return listed;
}

}  // namespace

TEST(Mappings, HaveTheCodeOfThisProcess) {
  EXPECT_TRUE(code_of_this_test_is_found());
  test::on_thread([] { EXPECT_TRUE(code_of_this_test_is_found()); });
}

// As with pthread_exit in main.
TEST(Mappings, AreFoundWhenTheFirstThreadHasEnded) {
  HM_NEEDS(kListsByThread);
  EXPECT_TRUE(test::child_succeeds([] {
    std::thread([] {
      while (first_thread_is_listed()) usleep(1000);
      _exit(code_of_this_test_is_found() ? 0 : 1);
    }).detach();
    syscall(SYS_exit, 1);
    return false;
  }));
}
