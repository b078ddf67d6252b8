/* Runs a program as on Linux 3.10, on which old hosts still run new containers: system calls that came later do not exist, and
 * neither does advice about memory.  Flags of older calls are not looked at.  Usage: old_kernel PROGRAM [ARGUMENT...] */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The numbers of system calls only grow: this was the last one of 3.10. */
enum { kLastCall = SYS_finit_module, kLastAdvice = MADV_DODUMP };

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define RETURN(what) BPF_STMT(BPF_RET | BPF_K, what)

int main(int argc, char** argv) {
  struct sock_filter lines[] = {
      LOAD(nr),
      BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, kLastCall, 0, 1),
      RETURN(SECCOMP_RET_ERRNO | ENOSYS),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 0, 4),
      LOAD(args[2]),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, MADV_FREE, 1, 0),
      BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, kLastAdvice, 0, 1),
      RETURN(SECCOMP_RET_ERRNO | EINVAL),
      RETURN(SECCOMP_RET_ALLOW),
  };
  struct sock_fprog filter = {sizeof lines / sizeof *lines, lines};
  if (argc < 2) {
    fprintf(stderr, "usage: old_kernel PROGRAM [ARGUMENT...]\n");
    return 2;
  }
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) {
    perror("old_kernel: seccomp");
    return 2;
  }
  execvp(argv[1], argv + 1);
  perror(argv[1]);
  return 127;
}
