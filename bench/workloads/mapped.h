// An array in a mapping of its own, which leaves no trace in the allocator under test.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdlib>
#include <span>

namespace bench {

// Begins as zeros.  Resident: so before anything is measured; otherwise only where it has been written.
enum class Pages { on_demand, resident };

template <class T>
class Mapped {
 public:
  explicit Mapped(std::size_t count, Pages pages = Pages::on_demand)
      : count_(count),
        data_(static_cast<T*>(mmap(nullptr, bytes(), PROT_READ | PROT_WRITE,
                                   MAP_PRIVATE | MAP_ANONYMOUS | (pages == Pages::resident ? MAP_POPULATE : 0), -1, 0))) {
    if (data_ == MAP_FAILED) std::abort();
  }
  Mapped(const Mapped&) = delete;
  Mapped& operator=(const Mapped&) = delete;
  ~Mapped() { munmap(data_, bytes()); }

  std::span<T> all() const { return {data_, count_}; }
  T& operator[](std::size_t index) const { return data_[index]; }

 private:
  std::size_t bytes() const { return (count_ + 1) * sizeof(T); }  // a mapping cannot be empty

  std::size_t count_;
  T* data_;
};

}  // namespace bench
