// Holds a block to which only the upper half of a vector register refers.  For hmalloc inspect, on x86-64 with AVX2.
#include <stdlib.h>
#include <unistd.h>

int main(void) {
  void* block = malloc(5000);
  if (write(1, "ready\n", 6) < 0) return 1;
  // Nothing else knows it: not the other registers, nor what functions left below the stack.
  __asm__ volatile(
      "vmovq %0, %%xmm1\n vpxor %%xmm0, %%xmm0, %%xmm0\n vinserti128 $1, %%xmm1, %%ymm0, %%ymm2\n"
      "vpxor %%xmm1, %%xmm1, %%xmm1\n xor %0, %0\n"
      "xor %%eax, %%eax\n mov $1024, %%ecx\n lea -1024(%%rsp), %%rdi\n rep stosb\n"
      "1: pause\n jmp 1b"
      : "+r"(block)
      :
      : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "xmm0", "xmm1", "xmm2", "memory");
  return 0;
}
