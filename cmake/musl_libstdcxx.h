/* In front of each source that cmake/musl.cmake compiles: libstdc++'s headers here were set up for glibc. */
#pragma once
#include <features.h>
#define __GLIBC_PREREQ(major, minor) 0
#include <locale.h>
#define __locale_t locale_t
#include <bits/c++config.h>
#undef _GLIBCXX_USE_PTHREAD_COND_CLOCKWAIT
#undef _GLIBCXX_USE_PTHREAD_MUTEX_CLOCKLOCK
#undef _GLIBCXX_USE_PTHREAD_RWLOCK_CLOCKLOCK
