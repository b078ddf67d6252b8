/* In front of each file of glibc that is compiled outside of its tree: what its own build would define. */
#include <errno.h>
#include <limits.h>

#define TIMEOUTFACTOR 1
#define __set_errno(value) (errno = (value))
#define attribute_hidden
#define libc_hidden_def(name)
#define libc_hidden_proto(name)
#define SRCDIR_PATH ""
#define OBJDIR_PATH ""
#define OBJDIR_ELF_LDSO_PATH ""
#define INSTDIR_PATH ""
#define LIBDIR_PATH ""
#define BINDIR_PATH ""
#define SBINDIR_PATH ""
#define SLIBDIR_PATH ""
#define ROOTSBINDIR_PATH ""
#define COMPLOCALEDIR_PATH ""

#ifdef POSIX_MEMALIGN_SETS_ERRNO /* glibc's does by the way, POSIX does not ask for it, and a test looks at errno alone. */
#include <stdlib.h>
static inline int with_errno(void** out, size_t alignment, size_t size) {
  int error = posix_memalign(out, alignment, size);
  if (error != 0) errno = error;
  return error;
}
#define posix_memalign with_errno
#endif
