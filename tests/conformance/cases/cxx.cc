// operator new and delete in every form, new_handler, bad_alloc, and thread_local objects whose destructors allocate.
#include <malloc.h>

#include <cstddef>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "case.h"

namespace {

constexpr std::size_t kHuge = static_cast<std::size_t>(PTRDIFF_MAX) - 4096;

void used(void* block, std::size_t size, std::size_t alignment) {
  REQUIRE(block != nullptr && reinterpret_cast<std::uintptr_t>(block) % alignment == 0);
  REQUIRE(malloc_usable_size(block) >= size);
  mark(hidden(block), size, 9);
}

// tag: none, or an alignment.
template <class... Tag>
void every_form(std::size_t size, std::size_t alignment, Tag... tag) {
  void* blocks[] = {::operator new(size, tag...),
                    ::operator new[](size, tag...),
                    ::operator new(size, tag..., std::nothrow),
                    ::operator new[](size, tag..., std::nothrow),
                    ::operator new(size, tag...),
                    ::operator new[](size, tag...)};
  for (void* block : blocks) used(block, size, alignment);
  ::operator delete(blocks[0], tag...);
  ::operator delete[](blocks[1], tag...);
  ::operator delete(blocks[2], tag..., std::nothrow);
  ::operator delete[](blocks[3], tag..., std::nothrow);
  ::operator delete(blocks[4], size, tag...);
  ::operator delete[](blocks[5], size, tag...);
}

template <class Call>
bool throws_bad_alloc(Call call) {
  try {
    hidden(call());
  } catch (const std::bad_alloc& error) { return error.what() != nullptr; }
  return false;
}

template <class... Tag>
void every_form_refuses(Tag... tag) {
  const std::size_t huge = hidden_size(kHuge);
  REQUIRE(throws_bad_alloc([=] { return ::operator new(huge, tag...); }));
  REQUIRE(throws_bad_alloc([=] { return ::operator new[](huge, tag...); }));
  REQUIRE(::operator new(huge, tag..., std::nothrow) == nullptr);
  REQUIRE(::operator new[](huge, tag..., std::nothrow) == nullptr);
}

int handler_calls = 0;
void gives_up_at_third_call() {
  if (++handler_calls == 3) std::set_new_handler(nullptr);
}
struct HandlerError {};
void throws_own_error() { throw HandlerError{}; }

void new_handler() {
  std::set_new_handler(gives_up_at_third_call);
  REQUIRE(throws_bad_alloc([] { return ::operator new(hidden_size(kHuge)); }));
  REQUIRE(handler_calls == 3);
  handler_calls = 0;
  std::set_new_handler(gives_up_at_third_call);
  REQUIRE(::operator new(hidden_size(kHuge), std::nothrow) == nullptr);
  REQUIRE(handler_calls == 3);
  bool own_error = false;
  std::set_new_handler(throws_own_error);
  try {
    hidden(::operator new(hidden_size(kHuge)));
  } catch (const HandlerError&) { own_error = true; }
  std::set_new_handler(nullptr);
  REQUIRE(own_error);
}

CASE(cxx_new) {
  for (std::size_t size = 0; size < 100000; size += size / 4 + 1) every_form(size, 16);
  for (std::size_t alignment = 8; alignment <= 65536; alignment *= 2)
    for (std::size_t size : {1, 200, 70000}) every_form(size, alignment, std::align_val_t{alignment});
  ::operator delete(hidden(nullptr));
  ::operator delete[](hidden(nullptr), std::size_t{8});
  every_form_refuses();
  every_form_refuses(std::align_val_t{64});
  new_handler();
}

struct Late {
  std::vector<std::string> lines;
  ~Late() {
    for (int i = 0; i < 100; i++) lines.push_back(std::string(static_cast<std::size_t>(i), 'x'));
    std::vector<int> more(5000, i_);
    REQUIRE(more[4999] == i_ && lines.back().size() == 99);
  }
  int i_ = 7;
};
thread_local Late late;
thread_local std::vector<std::string> words;

CASE(cxx_thread_local) {
  for (int round = 0; round < 200; round++) {
    std::thread threads[4];
    for (auto& thread : threads) {
      thread = std::thread([] {
        late.lines.emplace_back(300, 'a');
        for (int i = 0; i < 50; i++) words.emplace_back(40, 'b');
      });
    }
    for (auto& thread : threads) thread.join();
  }
}

}  // namespace

CASE_MAIN()
