/* A library in front of libc, for the functions that the allocator may call while it serves a request (the list is
 * SERVING in tests/lint/symbols.py): from inside each it allocates, frees, and now and then forks.  What the allocator
 * must not call there ends the process. */
#ifndef REENTRANCY_FRONT_H
#define REENTRANCY_FRONT_H

/* Of the calling thread: set around each call of the allocator. */
extern __thread int front_serving;
/* Prints who was called how often while somebody was served.  The number of those that had to be called and were not. */
int front_report(void);

#endif
