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
