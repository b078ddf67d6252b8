/* The smallest program: what any measurement finds beyond it is the measurer's. */
#if defined ADDRESS /* with malloc's address, which no compiler can leave out */
#include <stdlib.h>
void* (*volatile address)(size_t) = malloc;
#endif

int main(void) { return 0; }
