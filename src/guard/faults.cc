#include "guard/faults.h"

#include <signal.h>
#include <sys/syscall.h>

#include "base/process.h"
#include "base/report.h"
#include "base/system_call.h"
#include "guard/guarded_blocks.h"

namespace hm {
namespace {

struct sigaction before;  // what was there; written at start alone

// "write", "read", or what is known if the processor does not say.
const char* kind_of_access([[maybe_unused]] const void* context) noexcept {
#if defined(__x86_64__)
  constexpr long long kWrite = 2;
  return static_cast<const ucontext_t*>(context)->uc_mcontext.gregs[REG_ERR] & kWrite ? "write" : "read";
#else
  return "access";
#endif
}

void say(FdWriter& line, uint64_t bytes, const char* where) noexcept {
  if (bytes == 0) line << "right " << where;
  else line << bytes << (bytes == 1 ? " byte " : " bytes ") << where;
}

void explain(uintptr_t address, const char* access) noexcept {
  GuardedBlocks::Found found = guarded_blocks.find(address);
  {
    FdWriter line(2);
    line << kLibraryName << ": " << access << " at " << reinterpret_cast<const void*>(address) << ", ";
    if (found.place == nullptr) {
      line << "where no block was\n";
      return;
    }
    uintptr_t start = found.place->block, end = start + found.place->size;
    if (address < start) say(line, start - address, "in front of");
    else if (address < end) say(line, address - start, "into");
    else say(line, address - end, "behind");
    line << " a block of " << uint64_t{end - start} << (found.freed ? " bytes that was freed\n" : " bytes\n");
  }
  found.place->describe();
}

// As if nobody had looked.
void pass_on(int signal, siginfo_t* info, void* context) noexcept {
  if ((before.sa_flags & SA_SIGINFO) != 0) return before.sa_sigaction(signal, info, context);
  bool sent = info->si_code <= 0;  // by a thread, not by an access
  if (before.sa_handler == SIG_IGN && sent) return;
  if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) return before.sa_handler(signal);
  struct sigaction none{};
  none.sa_handler = SIG_DFL;
  sigaction(signal, &none, nullptr);
  // The instruction is executed once more; what was sent is sent once more.
  if (sent) system_call(SYS_tgkill, static_cast<long>(id_of_process()), my_thread_id(), signal);
}

void on_fault(int signal, siginfo_t* info, void* context) {
  auto address = address_of(info->si_addr);
  if (info->si_code > 0 && guarded_blocks.covers(address)) explain(address, kind_of_access(context));
  pass_on(signal, info, context);
}

}  // namespace

void answer_faults() noexcept {
  struct sigaction ours{};
  sigaction(SIGSEGV, nullptr, &before);
  ours.sa_sigaction = on_fault;
  ours.sa_mask = before.sa_mask;
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK | (before.sa_flags & (SA_NODEFER | SA_RESTART));
  sigaction(SIGSEGV, &ours, nullptr);
}

}  // namespace hm
