// How a program tells the simulator of many cores (lab/native/cores) what it does.  Without a simulator nothing happens:
// an entry into the allocator is marked by an instruction that does nothing, and everything else, which is rare, by a system
// call that does not exist.
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

namespace cores {

// Long forms of NOP that no assembler makes: `nopl kMark(%rax)`.
inline constexpr std::uint32_t kMarkEnter = 0x68634d01;
inline constexpr std::uint32_t kMarkLeave = 0x68634d02;

inline constexpr long kSystemCall = 0x68634d;
enum class Say : long {
  begin_turn = 1,  // this thread runs from now on, as the core that is named; no other one does
  end_turn,
  begin_counting,
  end_counting,  // the counts are written out
};

inline void say(Say what, unsigned core = 0) { syscall(kSystemCall, static_cast<long>(what), static_cast<long>(core)); }

// The call lies between these; the last one of a thread may lie between enter() and the thread's end.
inline void enter() { asm volatile("nopl %c0(%%rax)" : : "i"(kMarkEnter) : "memory"); }
inline void leave() { asm volatile("nopl %c0(%%rax)" : : "i"(kMarkLeave) : "memory"); }

}  // namespace cores
