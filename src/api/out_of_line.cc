// The inline functions of the public headers as functions of the library: for other languages, for programs that include
// hmalloc.h alone and shall run with any later version, and for function pointers.
#define HM_INLINE_
#define HM_PART_ static inline __attribute__((always_inline))
#include <hmalloc/hmalloc_local.h>  // IWYU pragma: keep (what it defines is what this file is for)
