#include "profile/pprof.h"

#include <sys/syscall.h>

#include <cerrno>
#include <cstring>
#include <ctime>

#include "base/report.h"
#include "base/system_call.h"
#include "pages/options.h"
#include "profile/mappings.h"
#include "profile/sampler.h"
#include "profile/stack_taker.h"

namespace hm {
namespace {

// Of the messages of profile.proto.
namespace field {
enum Profile {
  kSampleType = 1,
  kSample,
  kMapping,
  kLocation,
  kStringTable = 6,
  kDropFrames,
  kTime = 9,
  kPeriodType = 11,
  kPeriod,
  kComment,
  kDefaultSampleType
};
enum ValueType { kType = 1, kUnit };
enum Sample { kLocations = 1, kValues, kLabel };
enum Label { kKey = 1, kText, kNumber, kNumberUnit };
enum Mapping { kMappingId = 1, kStart, kLimit, kOffset, kFile, kBuildId };
enum Location { kLocationId = 1, kLocationMapping, kAddress };
}  // namespace field

// A message inside another one has its length in front, so it is made first.
template <size_t kMost>
class Message {
 public:
  void put(char byte) noexcept {
    if (used_ < kMost) bytes_[used_++] = byte;
  }
  void clear() noexcept { used_ = 0; }
  const char* begin() const noexcept { return bytes_; }
  size_t size() const noexcept { return used_; }

 private:
  char bytes_[kMost];
  size_t used_ = 0;
};

template <class To>
void varint(To& to, uint64_t number) noexcept {
  for (; number >= 0x80; number >>= 7) to.put(static_cast<char>(number | 0x80));
  to.put(static_cast<char>(number));
}
template <class To>
void number(To& to, int field, uint64_t value) noexcept {
  varint(to, static_cast<uint64_t>(field) << 3);
  varint(to, value);
}
template <class To>
void bytes(To& to, int field, const char* from, size_t n) noexcept {
  varint(to, static_cast<uint64_t>(field) << 3 | 2);
  varint(to, n);
  for (size_t i = 0; i < n; ++i) to.put(from[i]);
}
template <class To, size_t kMost>
void message(To& to, int field, const Message<kMost>& inner) noexcept {
  bytes(to, field, inner.begin(), inner.size());
}

struct Code {
  uintptr_t start, end;
};

// Of one sample: two stacks, and what is told of a life.
constexpr size_t kMostOfSample = kMostFrames * (10 + 32) + 512;

// Too much for a small stack of a signal handler.
struct Workspace {
  Mapping mapping;  // the last one read
  Code code[2048];  // mappings; what lies in others has an address only
  Message<10 * kMostFrames> locations;
  Message<kMostOfSample> sample;
  char output[16 * kKiB];
};

constexpr uint64_t kNone[4] = {};

constexpr const char kOwnFunctions[] =
    "(__libc_)?(malloc|calloc|realloc|reallocarray|memalign|aligned_alloc|posix_memalign|p?valloc)|operator new.*|"
    "hm_(malloc|calloc|realloc|aligned_alloc|shared_alloc|local_alloc|local_realloc|cache_alloc|cache_refill_)|"
    "hm::(\\(anonymous namespace\\)::)?(allocate|sample|reallocate|resize).*|hm::Samples::.*";

// How many bytes the character has that starts here; 0: this is not UTF-8.
size_t length_in_utf8(const unsigned char* text) noexcept {
  unsigned char first = text[0];
  size_t length = first < 0x80                    ? 1
                  : first >= 0xc2 && first < 0xe0 ? 2
                  : (first & 0xf0) == 0xe0        ? 3
                  : first >= 0xf0 && first < 0xf5 ? 4
                                                  : 0;
  for (size_t i = 1; i < length; ++i)
    if ((text[i] & 0xc0) != 0x80) return 0;
  bool too_long = (first == 0xe0 && text[1] < 0xa0) || (first == 0xf0 && text[1] < 0x90);
  bool no_character = (first == 0xed && text[1] >= 0xa0) || (first == 0xf4 && text[1] >= 0x90);
  return too_long || no_character ? 0 : length;
}

bool contains(const char* text, const char* part) noexcept {
  for (; *text != '\0'; ++text) {
    size_t n = 0;
    while (part[n] != '\0' && text[n] == part[n]) ++n;
    if (part[n] == '\0') return true;
  }
  return false;
}

class Profile {
 public:
  Profile(int fd, const Snapshot& snapshot, Workspace& space) noexcept
      : space_(space), out_(fd, space.output), snapshot_(snapshot) {}
  int write() noexcept {
    text("");  // the first has to be
    value_type(field::kSampleType, "alloc_objects", "count");
    value_type(field::kSampleType, "alloc_space", "bytes");
    value_type(field::kSampleType, "inuse_objects", "count");
    value_type(field::kSampleType, "inuse_space", "bytes");
    if (tells_lives_) {
      value_type(field::kSampleType, "freed_objects", "count");
      value_type(field::kSampleType, "freed_space", "bytes");
      value_type(field::kSampleType, "freed_samples", "count");
    }
    value_type(field::kPeriodType, "space", "bytes");
    number(out_, field::kPeriod, sampler.profile_rate());
    number(out_, field::kDefaultSampleType, 7);  // "inuse_space", counted from 0
    number(out_, field::kDropFrames, text(kOwnFunctions));
    if (snapshot_.lost > 0) number(out_, field::kComment, lost());
    mappings();
    if (!locations()) return ENOMEM;
    for (size_t i = 1; i <= snapshot_.stack_count; ++i)
      if (snapshot_.stacks[i].objects > 0) allocations(snapshot_.stacks[i]);
    if (tells_lives_ && !lives()) return ENOMEM;
    timespec now{};
    system_call(SYS_clock_gettime, CLOCK_REALTIME, system_call_argument(&now));
    // Last, so that a part of a profile can be told from a whole one.
    number(out_, field::kTime, static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec));
    out_.flush();
    return out_.error();
  }

 private:
  // Strings are told by when they came.  They are UTF-8; names of files need not be, and those of threads are cut anywhere.
  uint64_t text(const char* string) noexcept {
    size_t n = strlen(string);
    varint(out_, static_cast<uint64_t>(field::kStringTable) << 3 | 2);
    varint(out_, n);
    for (size_t i = 0; i < n;) {
      size_t length = length_in_utf8(reinterpret_cast<const unsigned char*>(string) + i);
      if (length == 0) out_.put('?'), ++i;
      for (size_t k = 0; k < length; ++k) out_.put(string[i++]);
    }
    return strings_++;
  }

  uint64_t lost() noexcept {
    static constexpr char kText[] = " samples are missing: no memory, or no stack";
    char line[20 + sizeof kText], *start = line + 20;
    for (size_t i = 0; i < sizeof kText; ++i) line[20 + i] = kText[i];
    for (uint64_t n = snapshot_.lost; n > 0; n /= 10) *--start = static_cast<char>('0' + n % 10);
    return text(start);
  }

  void value_type(int field, const char* type, const char* unit) noexcept {
    Message<16> inner;
    number(inner, field::kType, text(type));
    number(inner, field::kUnit, text(unit));
    message(out_, field, inner);
  }

  void mappings() noexcept {
    Mappings all;
    while (codes_ < std::size(space_.code) && all.next(space_.mapping)) {
      const Mapping& mapping = space_.mapping;
      Message<96> inner;
      space_.code[codes_++] = {mapping.start, mapping.end};
      number(inner, field::kMappingId, codes_);
      number(inner, field::kStart, mapping.start);
      number(inner, field::kLimit, mapping.end);
      number(inner, field::kOffset, mapping.offset);
      number(inner, field::kFile, text(mapping.file));
      number(inner, field::kBuildId, build_id(mapping));
      message(out_, field::kMapping, inner);
      // Not where the library is linked into something else, whose code this is, too.
      bool own = mapping.start <= own_code() && own_code() < mapping.end;
      if (own && contains(mapping.file, "/libhmalloc")) own_ = codes_;
    }
  }
  uint64_t build_id(const Mapping& mapping) noexcept {
    char digits[2 * sizeof mapping.build_id + 1], *end = digits;
    for (size_t i = 0; i < mapping.build_id_bytes; ++i) {
      *end++ = "0123456789abcdef"[mapping.build_id[i] >> 4];
      *end++ = "0123456789abcdef"[mapping.build_id[i] & 15];
    }
    *end = '\0';
    return text(digits);
  }
  static uintptr_t own_code() noexcept { return reinterpret_cast<uintptr_t>(&write_pprof); }

  size_t mapping_of(uintptr_t address) const noexcept {  // from 1; 0: none
    size_t low = 0, high = codes_;
    while (low < high) {
      size_t middle = (low + high) / 2;
      if (space_.code[middle].end <= address) low = middle + 1;
      else high = middle;
    }
    return low < codes_ && space_.code[low].start <= address ? low + 1 : 0;
  }

  // The call's address, not where it returns to.
  static uintptr_t call_before(uintptr_t return_address) noexcept { return return_address - 1; }

  // The id of a location is its address; each is written once.  False: there is no memory to find that out.
  bool locations() noexcept {
    MappedArray<uintptr_t> seen;
    size_t frames = 0;
    for (size_t i = 1; i <= snapshot_.stack_count; ++i) frames += snapshot_.stacks[i].frames;
    if (!seen.reserve(std::bit_ceil(2 * frames + 2))) return false;
    size_t mask = seen.size() - 1;
    for (size_t i = 0; i < frames; ++i) {
      uintptr_t address = call_before(snapshot_.frames[i]);
      size_t slot = address * 0x9e3779b97f4a7c15 >> 20 & mask;
      while (seen[slot] != 0 && seen[slot] != address) slot = (slot + 1) & mask;
      if (seen[slot] == address) continue;
      seen[slot] = address;
      Message<40> inner;
      number(inner, field::kLocationId, address);
      number(inner, field::kLocationMapping, mapping_of(address));
      number(inner, field::kAddress, address);
      message(out_, field::kLocation, inner);
    }
    seen.clear();
    return true;
  }

  // Calls `to` with the location of each frame, the innermost first, without the allocator's own, which are the innermost and
  // say nothing.
  template <class To>
  void for_each_location(const Stack& stack, To to) const noexcept {
    bool inside = own_ != 0;
    for (size_t i = 0; i < stack.frames; ++i) {
      uintptr_t address = call_before(snapshot_.frames[stack.first_frame + i]);
      inside = inside && mapping_of(address) == own_;
      if (!inside) to(address);
    }
  }
  void begin_sample(const Stack& stack, std::span<const uint64_t> of_stack, std::span<const uint64_t> of_life) noexcept {
    space_.locations.clear();
    for_each_location(stack, [this](uintptr_t address) { varint(space_.locations, address); });
    Message<70> values;
    for (uint64_t value : of_stack) varint(values, value);
    for (uint64_t value : of_life)
      if (tells_lives_) varint(values, value);
    space_.sample.clear();
    message(space_.sample, field::kLocations, space_.locations);
    message(space_.sample, field::kValues, values);
  }

  void allocations(const Stack& stack) noexcept {
    uint64_t values[] = {rounded(stack.objects), rounded(stack.bytes), rounded(stack.live_objects),
                         rounded(stack.live_bytes)};
    begin_sample(stack, values, std::span(kNone).first(3));
    message(out_, field::kSample, space_.sample);
  }

  // Of each thread the string that names it, by its row.  False: no memory.
  bool lives() noexcept {
    MappedArray<uint64_t> names;
    if (!names.reserve(size_t{snapshot_.thread_count} + 1)) return false;
    names[0] = text("other threads");
    for (uint32_t i = 1; i <= snapshot_.thread_count; ++i) names[i] = name_of(snapshot_.threads[i]);
    Labels labels{text("allocated_by"), text("freed_by"), text("age"),
                  text("nanoseconds"),  text("freed_at"), text("address")};
    for (uint32_t i = 1; i <= snapshot_.life_count; ++i) {
      const Life& life = snapshot_.lives[i];
      uint64_t values[] = {rounded(life.objects), rounded(life.bytes), life.samples};
      begin_sample(snapshot_.stacks[life.allocated_at], std::span(kNone).first(4), values);
      label(labels.allocated_by, field::kText, names[life.allocated_by]);
      label(labels.freed_by, field::kText, names[life.freed_by]);
      label(labels.age, field::kNumber, least_age(life.age), labels.nanoseconds);
      if (life.freed_at != 0)
        for_each_location(snapshot_.stacks[life.freed_at],
                          [&](uintptr_t address) { label(labels.freed_at, field::kNumber, address, labels.address); });
      message(out_, field::kSample, space_.sample);
    }
    names.clear();
    return true;
  }
  struct Labels {
    uint64_t allocated_by, freed_by, age, nanoseconds, freed_at, address;  // strings
  };
  void label(uint64_t key, int field, uint64_t value, uint64_t unit = 0) noexcept {
    Message<40> inner;
    number(inner, field::kKey, key);
    number(inner, field, value);
    if (unit != 0) number(inner, field::kNumberUnit, unit);
    message(space_.sample, field::kLabel, inner);
  }
  uint64_t name_of(const SampledThread& thread) noexcept {  // "name (number)", "another of name (0)"
    static constexpr char kAnother[] = "another of ";
    char line[sizeof kAnother + SampledThread::kMostName + 16], *end = line;
    for (size_t i = 0; i + 1 < sizeof kAnother && thread.is_another; ++i) *end++ = kAnother[i];
    for (const char* c = thread.name; c < thread.name + sizeof thread.name && *c != '\0'; ++c) *end++ = *c;
    char digits[10], *first = digits + sizeof digits;
    uint32_t n = thread.id;
    do *--first = static_cast<char>('0' + n % 10);
    while ((n /= 10) > 0);
    *end++ = ' ', *end++ = '(';
    while (first < digits + sizeof digits) *end++ = *first++;
    *end++ = ')', *end = '\0';
    return text(line);
  }

  Workspace& space_;
  FdWriter out_;
  const Snapshot& snapshot_;
  const bool tells_lives_ = options.profile_frees != 0 || snapshot_.life_count > 0;
  uint64_t strings_ = 0;
  size_t codes_ = 0;
  size_t own_ = 0;  // the library's own mapping, from 1
};

}  // namespace

int write_pprof(int fd, const Snapshot& snapshot) noexcept {
  MappedArray<Workspace> space;
  if (!space.reserve(1)) return ENOMEM;
  int error = Profile(fd, snapshot, space[0]).write();
  space.clear();
  return error;
}

}  // namespace hm
