// Profiles as their readers see them, and what they are held against.
#pragma once
#include <hmalloc/hmalloc.h>
#include <unistd.h>

#include <map>

#include "support.h"

namespace hm::test {

// What pprof reads, in small.
struct Parsed {
  struct Of {
    double objects = 0, bytes = 0, live_objects = 0, live_bytes = 0;
  };
  struct Sample {
    std::vector<uint64_t> locations, values;
    std::map<std::string, std::string> texts;
    std::map<std::string, std::vector<uint64_t>> numbers;  // by label
    bool is_life() const { return !texts.empty(); }
    bool lies_in(const std::vector<uint64_t>& stack, const void* from, const void* to) const {
      return std::any_of(stack.begin(), stack.end(),
                         [=](uint64_t each) { return address_of(from) <= each && each < address_of(to); });
    }
  };
  std::vector<std::string> strings;
  std::vector<Sample> samples;
  uint64_t last_field = 0;
  std::map<uint64_t, uint64_t> mapping_of;                     // location: mapping
  std::map<uint64_t, std::pair<uint64_t, uint64_t>> mappings;  // start, limit
  uint64_t period = 0, types = 0;

  // Of the samples that have a call made between these addresses.
  Of of(const void* from, const void* to) const {
    Of sum;
    for (const Sample& sample : samples) {
      const std::vector<uint64_t>& values = sample.values;
      if (sample.is_life() || !sample.lies_in(sample.locations, from, to) || values.size() < 4) continue;
      sum.objects += double(values[0]), sum.bytes += double(values[1]);
      sum.live_objects += double(values[2]), sum.live_bytes += double(values[3]);
    }
    return sum;
  }
};

class Reader {
 public:
  explicit Reader(const std::string& bytes) : at_(bytes.data()), end_(at_ + bytes.size()) {}
  bool next() {
    if (at_ == end_) return false;
    uint64_t tag = varint();
    field = tag >> 3;
    content.clear();
    number = 0;
    if ((tag & 7) == 2) {
      uint64_t n = varint();
      EXPECT_LE(n, uint64_t(end_ - at_));
      content.assign(at_, n);
      at_ += n;
    } else {
      EXPECT_EQ(tag & 7, 0u);
      number = varint();
    }
    return true;
  }
  std::vector<uint64_t> all() {
    std::vector<uint64_t> numbers;
    while (at_ != end_) numbers.push_back(varint());
    return numbers;
  }
  uint64_t field = 0, number = 0;
  std::string content;

 private:
  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; at_ != end_; shift += 7) {
      auto byte = static_cast<uint8_t>(*at_++);
      value |= uint64_t(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    ADD_FAILURE() << "it ends within a number";
    return value;
  }
  const char *at_, *end_;
};

inline std::map<uint64_t, uint64_t> numbers_of(const std::string& message) {
  std::map<uint64_t, uint64_t> numbers;
  for (Reader reader(message); reader.next();) numbers[reader.field] = reader.number;
  return numbers;
}

inline Parsed parse(const std::string& bytes) {
  Parsed out;
  std::vector<std::vector<std::map<uint64_t, uint64_t>>> labels;
  for (Reader reader(bytes); reader.next();) {
    out.last_field = reader.field;
    switch (reader.field) {
      case 1: ++out.types; break;
      case 2: {
        Parsed::Sample sample;
        labels.emplace_back();
        for (Reader inner(reader.content); inner.next();) {
          if (inner.field == 3) labels.back().push_back(numbers_of(inner.content));
          else (inner.field == 1 ? sample.locations : sample.values) = Reader(inner.content).all();
        }
        out.samples.push_back(sample);
        break;
      }
      case 3: {
        auto numbers = numbers_of(reader.content);
        out.mappings[numbers[1]] = {numbers[2], numbers[3]};
        break;
      }
      case 4: {
        auto numbers = numbers_of(reader.content);
        EXPECT_EQ(out.mapping_of.count(numbers[1]), 0u) << "each location is written once";
        EXPECT_EQ(numbers[1], numbers[3]);
        out.mapping_of[numbers[1]] = numbers[2];
        break;
      }
      case 6: out.strings.push_back(reader.content); break;
      case 12: out.period = reader.number; break;
      default: break;
    }
  }
  for (size_t i = 0; i < labels.size(); ++i)
    for (auto& label : labels[i]) {
      const std::string& key = out.strings.at(label[1]);
      if (label.count(2) != 0) out.samples[i].texts[key] = out.strings.at(label[2]);
      else out.samples[i].numbers[key].push_back(label[3]);
    }
  return out;
}

inline Parsed dump() {
  FILE* file = tmpfile();
  EXPECT_EQ(hm_profile_dump(fileno(file)), 0);
  std::string bytes(size_t(lseek(fileno(file), 0, SEEK_END)), '\0');
  EXPECT_EQ(pread(fileno(file), bytes.data(), bytes.size(), 0), ssize_t(bytes.size()));
  fclose(file);
  return parse(bytes);
}

// Each has a stretch of code of its own.
template <int kWho>
[[gnu::noinline, gnu::aligned(64)]] void* site(void* (*allocate)(size_t), size_t size) {
  void* block = allocate(size);
  asm volatile("" : : "r"(block), "i"(kWho) : "memory");
  return block;
}
using Site = void* (*)(void* (*)(size_t), size_t);
inline Parsed::Of of(const Parsed& parsed, Site where) {
  auto* start = reinterpret_cast<const char*>(where);
  return parsed.of(start, start + 64);
}

}  // namespace hm::test
