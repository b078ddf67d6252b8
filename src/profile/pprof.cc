#include "profile/pprof.h"

#include <sys/syscall.h>

#include <cerrno>
#include <cstring>
#include <ctime>

#include "base/report.h"
#include "base/system_call.h"
#include "profile/mappings.h"
#include "profile/sampler.h"

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
enum Sample { kLocations = 1, kValues };
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

struct Workspace {
  Mapping mapping;  // the last one read
  Code code[2048];  // mappings; what lies in others has an address only
  char output[16 * kKiB];
};

constexpr const char kOwnFunctions[] =
    "(__libc_)?(malloc|calloc|realloc|reallocarray|memalign|aligned_alloc|posix_memalign|p?valloc)|operator new.*|"
    "hm_(malloc|calloc|realloc|aligned_alloc|shared_alloc|local_alloc|local_realloc|cache_alloc|cache_refill_)|"
    "hm::(\\(anonymous namespace\\)::)?(allocate|sample|reallocate|resize).*|hm::Samples::.*";

uint64_t rounded(double value) noexcept {  // without libm
  auto whole = static_cast<uint64_t>(value);
  return whole + (value - static_cast<double>(whole) >= 0.5 ? 1 : 0);
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
    value_type(field::kPeriodType, "space", "bytes");
    number(out_, field::kPeriod, sampler.rate());
    number(out_, field::kDefaultSampleType, 7);  // "inuse_space", counted from 0
    number(out_, field::kDropFrames, text(kOwnFunctions));
    if (snapshot_.lost > 0) number(out_, field::kComment, lost());
    timespec now{};
    system_call(SYS_clock_gettime, CLOCK_REALTIME, system_call_argument(&now));
    number(out_, field::kTime, static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec));
    mappings();
    if (!locations()) return ENOMEM;
    for (size_t i = 1; i <= snapshot_.stack_count; ++i) sample(snapshot_.stacks[i]);
    out_.flush();
    return out_.error();
  }

 private:
  // Strings are told by when they came.
  uint64_t text(const char* string) noexcept {
    bytes(out_, field::kStringTable, string, strlen(string));
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

  void sample(const Stack& stack) noexcept {
    Message<10 * kMostFrames> locations;
    bool inside = own_ != 0;  // the allocator's own frames are the innermost, and say nothing
    for (size_t i = 0; i < stack.frames; ++i) {
      uintptr_t address = call_before(snapshot_.frames[stack.first_frame + i]);
      inside = inside && mapping_of(address) == own_;
      if (!inside) varint(locations, address);
    }
    Message<40> values;
    for (double value : {stack.objects, stack.bytes, stack.live_objects, stack.live_bytes}) varint(values, rounded(value));
    Message<10 * kMostFrames + 64> inner;
    message(inner, field::kLocations, locations);
    message(inner, field::kValues, values);
    message(out_, field::kSample, inner);
  }

  Workspace& space_;
  FdWriter out_;
  const Snapshot& snapshot_;
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
