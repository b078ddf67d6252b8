/* Leaves a file: whoever starts it, for whatever reason, is found out. */
#include <fcntl.h>

int main(void) { return open(MARKER, O_CREAT | O_WRONLY, 0644) < 0; }
