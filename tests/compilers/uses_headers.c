/* Uses what is inline in the public headers, in any mode of C or C++. */
#include <hmalloc/hmalloc_local.h>

void* take_local(size_t size);
void give_local(void* block);
void* take(struct hm_cache* cache);
void give(struct hm_cache* cache, void* block);

void* take_local(size_t size) { return size == 0 ? hm_local_alloc(100) : hm_local_alloc(size); }
void give_local(void* block) { hm_local_free_sized(block, 100); }
void* take(struct hm_cache* cache) { return hm_cache_alloc(cache); }
void give(struct hm_cache* cache, void* block) { hm_cache_free(cache, block); }
