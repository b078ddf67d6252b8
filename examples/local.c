/* Scratch memory of one thread: bump and count, the cheapest blocks there are.  When the last block of a 64 KB unit is
 * freed, the whole unit is one free piece again. */
#include <hmalloc/hmalloc_local.h>
#include <stdio.h>

struct node {
  struct node* next;
  long value;
};

int main(void) {
  struct node* list = NULL;
  for (long i = 0; i < 100000; ++i) {
    struct node* node = hm_local_alloc(sizeof *node);
    if (node == NULL) return 1;
    *node = (struct node){list, i};
    list = node;
  }
  long sum = 0;
  while (list != NULL) {
    struct node* node = list;
    list = node->next;
    sum += node->value;
    hm_local_free(node);
  }
  printf("sum %ld\n", sum);
  return sum == 4999950000 ? 0 : 1;
}
