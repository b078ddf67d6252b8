// An input of a fuzzer, read as a program: every byte string means something, and what is missing at its end reads as 0.
#pragma once
#include <cstddef>
#include <cstdint>

namespace fuzz {

class Stream {
 public:
  Stream(const uint8_t* data, size_t size) : at_(data), end_(data + size) {}
  bool at_end() const { return at_ == end_; }
  uint8_t byte() { return at_ == end_ ? uint8_t{0} : *at_++; }
  size_t number(size_t bytes) {
    size_t value = 0;
    while (bytes-- > 0) value = value << 8 | byte();
    return value;
  }
  size_t below(size_t limit) { return number(limit > 256 ? 2 : 1) % limit; }
  // Part i of n, for threads that run at once.
  Stream part(size_t i, size_t n) const {
    size_t length = static_cast<size_t>(end_ - at_) / n;
    return {at_ + i * length, length};
  }

 private:
  const uint8_t* at_;
  const uint8_t* end_;
};

}  // namespace fuzz
