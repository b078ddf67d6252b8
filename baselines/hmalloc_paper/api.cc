#include <cerrno>

#include "baselines/hmalloc_paper.h"
#include "baselines/hmalloc_paper/hmalloc_paper.h"

namespace {

template <void* (*allocate)(size_t) noexcept>
void* served(size_t size) noexcept {
  void* block = HM_LIKELY(size <= hm::kMaxRequest) ? allocate(size + (size == 0)) : nullptr;
  if (HM_UNLIKELY(block == nullptr)) errno = ENOMEM;
  return block;
}

}  // namespace

void* hmp_local_alloc(size_t size) noexcept { return served<hm::hmalloc_paper::allocate_local>(size); }
void hmp_local_free(void* block) noexcept {
  if (block != nullptr) hm::hmalloc_paper::deallocate_local(block, "hmp_local_free");
}
void* hmp_shared_alloc(size_t size) noexcept { return served<hm::hmalloc_paper::allocate>(size); }
void hmp_shared_free(void* block) noexcept {
  if (block != nullptr) hm::hmalloc_paper::deallocate(block, "hmp_shared_free");
}
