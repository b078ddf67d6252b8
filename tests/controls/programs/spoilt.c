/* A library with what no library of ours may have. */
#if defined RUNTIME
void* __cxa_allocate_exception(unsigned long);
void* raise_up(void) { return __cxa_allocate_exception(1); }
#endif
#if defined NEEDS
double cos(double);
double turned(double angle) { return cos(angle); }
#endif
#if defined EXTRA
void surprise(void) {}
#endif
#if defined UNVERSIONED
const char* hm_version(void) { return ""; }
#endif
#if defined CALLS
int usleep(unsigned);
void pause_a_little(void) { usleep(1); }
#endif
#if defined WIDE
__thread char wide[4096] = {1};
char first(void) { return wide[0]; }
#endif
