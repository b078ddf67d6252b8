/* Allocates until its input ends: server [closed], without its first hundred descriptors but that. */
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

int main(int count, char** words) {
  struct pollfd input = {.fd = 0, .events = POLLIN};
  (void)words;
  for (int fd = 1; count > 1 && fd < 100; fd++) close(fd);
  do
    for (int i = 0; i < 20; i++) free(malloc(100000));
  while (poll(&input, 1, 1) == 0);
  return 0;
}
