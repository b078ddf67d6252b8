"""What the libraries may ask of others: every undefined symbol, where it may be called, and why it may be there.

What serves malloc and free must take no lock of libc's, run none of the program's code and start nothing; it may
allocate only where the reason says what holds then.  tests/reentrancy puts itself in front of those names and does all
of that from inside them.  System calls are no symbols: they are made directly (src/base/system_call.h)."""

# In any call of the family, also inside another library's locks.
SERVING = {
    "memcpy": "realloc copies a block, and the hardened library writes what is behind one; nothing is open then",
    "memset": "calloc, when its block is the caller's; the hardened library clears what is freed, and nothing is open",
    "__errno_location": "errno, of the calling thread",
    "getauxval": "the size of a page, once and before anything is open, and at load the clock, whether the program is setuid, and whether there are memory tags; reads what the kernel left there at exec",
    "pthread_setspecific": "a thread gets a heap: it may allocate for a key above 32, and finds the heap in its place",
    "pthread_key_create": "once: a key is taken by a compare-and-swap, without a lock",
    "__libc_single_threaded": "weak; a variable: the order in which a refill hands blocks out, and HMALLOC_TAGS at load",
    "pthread_key_delete": "two threads made the key at once: the same compare-and-swap",
}
# The process ends.
MISUSE = {"abort": "after the line that says which call was wrong; a handler of the program's may run, and may allocate"}
# operator new has failed, and malloc has returned: nothing is open.
NEW_FAILED = {
    "dlopen": "weak; finds libstdc++ where a plugin brought it, and never loads it",
    "dlsym": "weak; as dlopen; and when a profile starts, for _dl_find_object, which is called with its stacks and takes no lock",
    "_ZSt15get_new_handlerv": "weak; the program's handler, which the standard wants to be called",
    "_ZSt17__throw_bad_allocv": "weak; bad_alloc",
    "__cxa_begin_catch": "weak; the nothrow forms catch what a handler throws",
    "__cxa_end_catch": "weak; as __cxa_begin_catch",
    "__gxx_personality_v0": "weak; as __cxa_begin_catch",
}
AT_LOAD = {
    "environ": "the options; getenv may be somebody else's, and does not go through all names",
    "strchr": "the options",
    "strcmp": "the options",
    "strlen": "the options",
    "strncmp": "the options",
    "sigaction": "statistics at SIGTERM and HMALLOC_GUARD, if they are asked for; there also in the handler, which hands a fault on",
    "__register_atfork": "pthread_atfork, with a function for the child alone",
    "program_invocation_short_name": "HMALLOC_VERBOSE, and the heading of statistics",
}
# hm_background_start, and HMALLOC_BACKGROUND=1 at load; never in an allocation.
BACKGROUND = {
    "pthread_create": "the thread that is asked for: one of libc's, so that setuid reaches it",
    "pthread_attr_init": "its stack is small, and nobody joins it",
    "pthread_attr_setdetachstate": "as pthread_attr_init",
    "pthread_attr_setstacksize": "as pthread_attr_init",
    "pthread_attr_destroy": "as pthread_attr_init",
    "__sysconf": "PTHREAD_STACK_MIN, which a program with much thread-local storage raises",
    "sigfillset": "no signal of the program's is for this thread",
    "pthread_sigmask": "as sigfillset; the system call would also keep away the signals with which libc runs setuid",
}
# HMALLOC_PROFILE, hm_profile_start and HMALLOC_GUARD: when a block is sampled, and before that once when that starts.
PROFILE = {"backtrace": "weak; the stack of whoever allocates, when the block is the caller's and nothing is open; loads libgcc_s "
                        "and allocates the first time, which is at the start; takes the loader's lock where glibc is older than 2.35"}
ASKED_FOR = {"fprintf": "malloc_info, into a FILE of the program's; nothing is open then"}
FROM_THE_COMPILER = {"__cxa_finalize": "of crtbeginS.o: what ran at load is undone when the library goes"}
# The tools of one system write these, and those of another do not.
TOOLS = {
    "__environ": "the linker names the strong alias of environ too",
    "__progname": "the linker names an alias of program_invocation_short_name too",
    "__gmon_start__": "weak; of crti.o, for gprof",
    "_ITM_registerTMCloneTable": "weak; of crtbeginS.o, for transactional memory",
    "_ITM_deregisterTMCloneTable": "weak; of crtbeginS.o, for transactional memory",
    "__stack_chk_fail": "compilers that guard stacks by default: the process ends",
    "_Unwind_Resume": "weak; compilers differ in where the nothrow forms of new go on",
}
ALWAYS = {**SERVING, **MISUSE, **NEW_FAILED, **AT_LOAD, **BACKGROUND, **PROFILE, **ASKED_FOR, **FROM_THE_COMPILER}


def compare(found):
    """found: the names that a library does not define itself."""
    return ([f"asks for {name}, which has no reason here" for name in sorted(found - ALWAYS.keys() - TOOLS.keys())] +
            [f"no longer asks for {name}: strike it off the table" for name in sorted(ALWAYS.keys() - found)])
