// Values as bytes, in both directions: one function of a class names what it consists of, and writes and reads it.
//
//   template <class A> void serialize(A& archive) { archive(count_, waiting_, names_); }
//
// Understood are numbers, enumerations, trivially copyable structs without pointers, std::string, vector, deque, map, set,
// pair, array and optional of these, and classes with a serialize.  The bytes are for the same program on machines of one
// kind.  Reading trusts no size: whatever the bytes are, it takes no more memory than they account for, and throws Error
// if they end early.  Used by one thread.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "pdes/options.h"

namespace pdes {

class Archive;

template <class T>
concept Serializable = requires(T& value, Archive& archive) { value.serialize(archive); };

class Archive {
 public:
  Archive() = default;                                                                         // to write
  explicit Archive(std::span<const std::byte> bytes) noexcept : reads_(true), left_(bytes) {}  // to read what stays there

  bool reads() const noexcept { return reads_; }
  std::span<const std::byte> left() const noexcept { return left_; }  // when reading: what has not been read
  std::vector<std::byte> take() noexcept { return std::move(written_); }

  template <class... T>
  void operator()(T&... values) {
    (one(values), ...);
  }

  // As many bytes as there are.
  void raw(void* bytes, std::size_t size) {
    if (size == 0) return;  // where nothing is, the pointer may be null
    if (reads_) {
      std::memcpy(bytes, next(size).data(), size);
    } else {
      // Not insert: of that GCC 12 says under sanitizers that it writes beyond the end.
      const std::size_t at = written_.size();
      written_.resize(at + size);
      std::memcpy(written_.data() + at, bytes, size);
    }
  }
  // When reading: the next bytes, in place.
  std::span<const std::byte> next(std::size_t size) {
    if (size > left_.size()) ended();
    const auto bytes = left_.first(size);
    left_ = left_.subspan(size);
    return bytes;
  }

 private:
  template <class T>
  static constexpr bool kBytes = std::is_trivially_copyable_v<T> && !Serializable<T>;

  [[noreturn]] static void ended() { throw Error("the saved bytes end early"); }
  std::size_t place() const noexcept { return reads_ ? left_.size() : written_.size(); }

  template <class T>
  void one(T& value) {
    if constexpr (Serializable<T>) {
      value.serialize(*this);
    } else {
      static_assert(std::is_trivially_copyable_v<T>,
                    "pdes::Archive does not know this type: give it template <class A> void serialize(A& archive)");
      static_assert(!std::is_pointer_v<T> && !std::is_member_pointer_v<T>,
                    "a pointer means nothing to another process: save what it points to");
      raw(&value, sizeof value);
    }
  }
  template <class T, class A>
  void one(std::vector<T, A>& values) {
    sequence(values);
  }
  template <class A>
  void one(std::vector<bool, A>& values) {
    std::size_t count = count_of(values.size());
    if (reads_) values.clear();
    for (std::size_t i = 0; i < count; ++i) {
      bool set = !reads_ && values[i];
      raw(&set, sizeof set);
      if (reads_) values.push_back(set);
    }
  }
  template <class C, class T, class A>
  void one(std::basic_string<C, T, A>& values) {
    sequence(values);
  }
  template <class T, class A>
  void one(std::deque<T, A>& values) {
    elements(values);
  }
  template <class K, class T, class C, class A>
  void one(std::map<K, T, C, A>& values) {
    tree(values, [this](std::pair<K, T>& pair) { (*this)(pair.first, pair.second); });
  }
  template <class K, class C, class A>
  void one(std::set<K, C, A>& values) {
    tree(values, [this](K& key) { (*this)(key); });
  }
  template <class T, class U>
  void one(std::pair<T, U>& pair) {
    (*this)(pair.first, pair.second);
  }
  template <class T, std::size_t N>
  void one(std::array<T, N>& values) {
    if constexpr (kBytes<T>) raw(values.data(), N * sizeof(T));
    else
      for (T& each : values) (*this)(each);
  }
  template <class T, std::size_t N>
  void one(T (&values)[N]) {
    for (T& each : values) (*this)(each);
  }
  template <class T>
  void one(std::optional<T>& maybe) {
    bool there = maybe.has_value();
    raw(&there, sizeof there);
    if (reads_ && there) maybe.emplace();
    if (reads_ && !there) maybe.reset();
    if (maybe) (*this)(*maybe);
  }

  // A count of things that take a byte each, at least.
  std::size_t count_of(std::uint64_t count) {
    raw(&count, sizeof count);
    if (reads_ && count > left_.size()) ended();
    return static_cast<std::size_t>(count);
  }
  // An element without bytes of its own gets one: so no count exceeds the bytes that are left.
  template <class Do>
  void element(Do&& write_or_read) {
    const std::size_t before = place();
    write_or_read();
    std::byte none{};
    if (place() == before) raw(&none, sizeof none);
  }

  template <class Sequence>
  void sequence(Sequence& values) {
    using T = typename Sequence::value_type;
    if constexpr (kBytes<T>) {
      static_assert(!std::is_pointer_v<T>, "a pointer means nothing to another process: save what it points to");
      const std::size_t count = count_of(values.size());
      if (reads_ && count > left_.size() / sizeof(T)) ended();
      if (reads_) values.resize(count);
      raw(values.data(), count * sizeof(T));
    } else {
      elements(values);
    }
  }
  template <class Sequence>
  void elements(Sequence& values) {
    const std::size_t count = count_of(values.size());
    if (reads_) values.clear();
    for (std::size_t i = 0; i < count; ++i) element([&] { (*this)(reads_ ? values.emplace_back() : values[i]); });
  }
  template <class Tree, class Do>
  void tree(Tree& values, Do&& write_or_read) {
    using Element = std::remove_cvref_t<decltype(as_written(*values.begin()))>;
    const std::size_t count = count_of(values.size());
    if (!reads_) {
      for (const auto& each : values) {
        Element copy = as_written(each);
        element([&] { write_or_read(copy); });
      }
      return;
    }
    values.clear();
    for (std::size_t i = 0; i < count; ++i) {
      Element read{};
      element([&] { write_or_read(read); });
      values.insert(values.end(), std::move(read));
    }
  }
  // Keys in a tree are constant; what is written is a copy.
  template <class K, class T>
  static std::pair<K, T> as_written(const std::pair<const K, T>& pair) {
    return pair;
  }
  template <class K>
  static K as_written(const K& key) {
    return key;
  }

  bool reads_ = false;
  std::span<const std::byte> left_;
  std::vector<std::byte> written_;
};

template <class... T>
std::vector<std::byte> to_bytes(T&... values) {
  Archive archive;
  archive(values...);
  return archive.take();
}
template <class... T>
void from_bytes(std::span<const std::byte> bytes, T&... values) {
  Archive archive(bytes);
  archive(values...);
}

}  // namespace pdes
