/* Scratch memory of one thread: the cheapest blocks there are, because both calls are inline and know the size. */
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
    hm_local_free_sized(node, sizeof *node);
  }
  printf("sum %ld\n", sum);
  return sum == 4999950000 ? 0 : 1;
}
