// Values as they lie in memory, at the end of a message for another rank.
#pragma once

#include <cstddef>
#include <cstring>
#include <vector>

namespace pdes {

template <class T>
void append(std::vector<std::byte>& message, const T* values, std::size_t count) {
  const std::size_t at = message.size();
  message.resize(at + count * sizeof(T));
  if (count > 0) std::memcpy(message.data() + at, values, count * sizeof(T));
}

}  // namespace pdes
