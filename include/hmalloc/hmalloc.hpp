// hmalloc for C++20: allocators and memory resources for local and for shared memory.
//
// Units      allocate(n) of an allocator counts objects; sizes and alignments of a resource are bytes.
// Alignment  any type's: beyond 16 bytes (local) or 64 (shared) a block is a general one with the required alignment.
// Ownership  a block belongs to the container that asked for it.  Everything here is stateless: any two allocators of
//            one kind are equal, so containers may be moved and swapped freely, also between threads.
// Threads    any thread may use everything at any time.  Memory of local_allocator and local_resource() should be freed by
//            the thread that allocated it, whose cache then has it for the next request; any other may free it, too.
// Errors     std::bad_alloc: no memory.  std::bad_array_new_length: n objects would not fit into the address space.
//            Freeing with another size or alignment than was requested is undefined, as in the standard.
// Source     "An efficient multi-threaded memory allocator for PDES applications" (HMalloc), sections 3.1 to 3.3.
#ifndef HMALLOC_HMALLOC_HPP
#define HMALLOC_HMALLOC_HPP

#include <hmalloc/hmalloc_local.h>

#include <cstddef>
#include <memory_resource>
#include <new>
#include <type_traits>

namespace hm {

namespace detail {

inline void* or_throw(void* block) {
  if (block == nullptr) throw std::bad_alloc();
  return block;
}

// This thread will free the block: both are inline, and read no metadata.
struct LocalMemory {
  static constexpr std::size_t kAlignment = 16;
  static void* allocate(std::size_t bytes, std::size_t alignment) {
    return or_throw(alignment <= kAlignment ? hm_local_alloc(bytes) : hm_aligned_alloc(alignment, bytes));
  }
  static void free(void* block, std::size_t bytes, std::size_t alignment) noexcept {
    alignment <= kAlignment ? hm_local_free_sized(block, bytes) : hm_free(block);
  }
};

// Other threads will free the block: whole cache lines; the size on free saves all reads of metadata (section 3.2).
struct SharedMemory {
  static constexpr std::size_t kAlignment = 64;
  static void* allocate(std::size_t bytes, std::size_t alignment) {
    return or_throw(alignment <= kAlignment ? hm_shared_alloc(bytes) : hm_aligned_alloc(alignment, bytes));
  }
  static void free(void* block, std::size_t bytes, std::size_t alignment) noexcept {
    alignment <= kAlignment ? hm_shared_free_sized(block, bytes) : hm_free(block);
  }
};

template <class T, class Memory>
class Allocator {
 public:
  using value_type = T;
  using is_always_equal = std::true_type;
  using propagate_on_container_move_assignment = std::true_type;

  constexpr Allocator() noexcept = default;
  template <class U>
  constexpr Allocator(const Allocator<U, Memory>&) noexcept {}

  [[nodiscard]] T* allocate(std::size_t n) {
    if (n > PTRDIFF_MAX / sizeof(T)) throw std::bad_array_new_length();
    return static_cast<T*>(Memory::allocate(n * sizeof(T), alignof(T)));
  }
  void deallocate(T* block, std::size_t n) noexcept { Memory::free(block, n * sizeof(T), alignof(T)); }

  template <class U>
  friend constexpr bool operator==(const Allocator&, const Allocator<U, Memory>&) noexcept {
    return true;
  }
};

template <class Memory>
class Resource final : public std::pmr::memory_resource {
  void* do_allocate(std::size_t bytes, std::size_t alignment) override { return Memory::allocate(bytes, alignment); }
  void do_deallocate(void* block, std::size_t bytes, std::size_t alignment) override {
    Memory::free(block, bytes, alignment);
  }
  // Local and shared blocks are freed differently, so a resource equals only itself.
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override { return this == &other; }
};

// Never destroyed: containers with static storage may outlive every other static object.
template <class Memory>
std::pmr::memory_resource* resource() noexcept {
  alignas(Resource<Memory>) static std::byte place[sizeof(Resource<Memory>)];
  static std::pmr::memory_resource* const only = ::new (static_cast<void*>(place)) Resource<Memory>;
  return only;
}

}  // namespace detail

// For containers that live and die in one thread: std::vector<Event, hm::local_allocator<Event>>.
template <class T>
using local_allocator = detail::Allocator<T, detail::LocalMemory>;

// For objects that other threads free: std::allocate_shared<Message>(hm::shared_allocator<Message>(), ...).  Every
// block fills whole 64-byte lines.
template <class T>
using shared_allocator = detail::Allocator<T, detail::SharedMemory>;

// The same two as memory resources, which live as long as the process: std::pmr::vector<Event> events(hm::local_resource()).
inline std::pmr::memory_resource* local_resource() noexcept { return detail::resource<detail::LocalMemory>(); }
inline std::pmr::memory_resource* shared_resource() noexcept { return detail::resource<detail::SharedMemory>(); }

}  // namespace hm

#endif
