/* A library that can be preloaded, and has nothing to do with malloc. */
int not_an_allocator(void) { return 1; }
