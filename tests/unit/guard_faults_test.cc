// Guarded blocks, and the mistakes that they show.
#include <csignal>

#include "guard/faults.h"
#include "guarded.h"

using namespace hm;
using namespace hm::test;

namespace {

const auto kFault = testing::KilledBySignal(SIGSEGV);
const auto kAborted = testing::KilledBySignal(SIGABRT);

struct GuardFaults : Guarded {
  GuardFaults() { answer_faults(); }
};

void handle_faults_by(void (*handler)(int, siginfo_t*, void*)) {
  struct sigaction own{};
  own.sa_flags = SA_SIGINFO;
  own.sa_sigaction = handler;
  sigaction(SIGSEGV, &own, nullptr);
}

void start_all() {
  guarded_blocks.start(0);
  sampler.start_for_guard();
  answer_faults();
}

// The optimizer must not know what becomes of it.
void write_to(char* block, ptrdiff_t at) { const_cast<volatile char*>(block)[at] = 1; }
char read_from(char* block, ptrdiff_t at) { return const_cast<volatile char*>(block)[at]; }

#if defined(__x86_64__)
constexpr char kWrite[] = "hmalloc: write at 0x[0-9a-f]+, ", kRead[] = "hmalloc: read at 0x[0-9a-f]+, ";
#else
constexpr char kWrite[] = "hmalloc: access at 0x[0-9a-f]+, ", kRead[] = "hmalloc: access at 0x[0-9a-f]+, ";
#endif
constexpr char kAllocated[] =
    "\n  allocated by thread [0-9]+, from\n    #0 0x[0-9a-f]+ /[^\n]*hm_unit[^\n]*\\+0x[0-9a-f]+\n";
constexpr char kFreed[] = "\n  freed by thread [0-9]+, from\n    #0 0x[0-9a-f]+ /[^\n]*hm_unit[^\n]*\\+0x[0-9a-f]+\n";

std::string said(const char* access, const char* where, bool freed = false) {
  return std::string(access) + where + (freed ? " that was freed" : "") + (freed ? kFreed : kAllocated);
}

}  // namespace

TEST_F(GuardFaults, AWriteBehindTheEnd) {
  char* block = guarded_at(true, 48);
  EXPECT_EXIT(write_to(block, 48), kFault, said(kWrite, "right behind a block of 48 bytes"));
  EXPECT_EXIT(write_to(block, 49), kFault, said(kWrite, "1 byte behind a block of 48 bytes"));
  EXPECT_EXIT(read_from(block, 148), kFault, said(kRead, "100 bytes behind a block of 48 bytes"));
  hm_free(block);
}

TEST_F(GuardFaults, AWriteInFrontOfTheStart) {
  char* block = guarded_at(false, 48);
  EXPECT_EXIT(write_to(block, -1), kFault, said(kWrite, "1 byte in front of a block of 48 bytes"));
  EXPECT_EXIT(read_from(block, -20), kFault, said(kRead, "20 bytes in front of a block of 48 bytes"));
  hm_free(block);
}

TEST_F(GuardFaults, UseAfterFree) {
  char* block = guarded(300);
  hm_free(block);
  EXPECT_EXIT(write_to(block, 7), kFault, said(kWrite, "7 bytes into a block of 304 bytes", true));
  EXPECT_EXIT(read_from(block, 0), kFault, said(kRead, "right into a block of 304 bytes", true));
}

// Both stacks, and the threads that it was.
TEST_F(GuardFaults, WhoAllocatedAndWhoFreedItAreTold) {
  char* block = guarded(64);
  on_thread([&] { hm_free(block); });
  EXPECT_EXIT(write_to(block, 0), kFault,
              said(kWrite, "[^\n]*", true) + "(    #[^\n]*\n)*  allocated by thread [0-9]+, from\n");
}

TEST_F(GuardFaults, ADoubleFreeAndWrongPointersEndTheProgram) {
  char* block = guarded(96);
  EXPECT_EXIT(hm_free(block + 16), kAborted, std::string("points into a block, not to its start") + kAllocated);
  EXPECT_EXIT(hm_free(block + 1), kAborted, "misaligned pointer");
  EXPECT_EXIT(hm_free(block + os::page_size()), kAborted, "not a block of hmalloc");
  EXPECT_EXIT(hm_free(hm_realloc(block + 16, 300)), kAborted, "hm_realloc.*points into a block");
  hm_free(block);
  EXPECT_EXIT(hm_free(block), kAborted, std::string("double free") + kFreed);
  EXPECT_EXIT((void)hm_usable_size(block), kAborted, "double free");
}

// Of two that free it at once, one finds out.
TEST_F(GuardFaults, TwoThreadsThatFreeItAtOnce) {
  EXPECT_EXIT(
      {
        for (;;) {
          char* block = guarded(64);
          std::atomic<int> ready{0};
          on_threads(2, [&](unsigned) {
            ++ready;
            while (ready < 2) {}
            hm_free(block);
          });
        }
      },
      kAborted, "double free");
}

// What nobody guards is a crash as before, and says nothing.
TEST_F(GuardFaults, OtherFaultsAreAsTheyWere) {
  constexpr char kNothing[] = "^(qemu: [^\n]*\n)?$";
  EXPECT_EXIT(write_to(reinterpret_cast<char*>(sysconf(_SC_PAGESIZE) / 2), 0), kFault, kNothing);
  EXPECT_EXIT(raise(SIGSEGV), kFault, kNothing);
  EXPECT_EXIT(kill(getpid(), SIGSEGV), kFault, kNothing);
}

TEST(GuardHandlers, ThatWereThereBeforeAreCalled) {
  EXPECT_EXIT(
      {
        handle_faults_by([](int, siginfo_t* info, void*) { _exit(info->si_code == SEGV_ACCERR ? 42 : 1); });
        start_all();
        write_to(guarded_at(true, 48), 48);
      },
      testing::ExitedWithCode(42), said(kWrite, "right behind a block of 48 bytes"));
  EXPECT_EXIT(
      {
        signal(SIGSEGV, [](int number) { _exit(number); });
        start_all();
        write_to(guarded_at(true, 48), 48);
      },
      testing::ExitedWithCode(SIGSEGV), said(kWrite, "right behind a block of 48 bytes"));
}

// Nobody takes note of a signal that was ignored; of a fault one does.
TEST(GuardHandlers, ASignalThatWasIgnoredIsIgnored) {
  EXPECT_EXIT(
      {
        signal(SIGSEGV, SIG_IGN);
        start_all();
        raise(SIGSEGV);
        raise(SIGSEGV);
        write_to(guarded_at(true, 48), 48);
      },
      kFault, said(kWrite, "right behind a block of 48 bytes"));
}

// Which a program has for overflows of its stack.
TEST_F(GuardFaults, TheSignalsOwnStackIsEnough) {
  EXPECT_EXIT(
      {
        static char own[16 * 1024];  // twice of what SIGSTKSZ was
        stack_t stack{};
        stack.ss_sp = own;
        stack.ss_size = sizeof own;
        sigaltstack(&stack, nullptr);
        write_to(guarded_at(true, 48), 48);
      },
      kFault, said(kWrite, "right behind a block of 48 bytes"));
}

TEST_F(GuardFaults, InAChildOfAFork) {
  char* block = guarded(80);
  hm_free(block);
  EXPECT_FALSE(child_succeeds([&] {
    write_to(block, 3);
    return true;
  }));
}
