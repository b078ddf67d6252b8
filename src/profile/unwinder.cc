#include "profile/unwinder.h"

#include <dlfcn.h>

#include <cstring>

#include "profile/hash.h"

#if defined(__x86_64__) && defined(DLFO_EH_SEGMENT_TYPE)

extern "C" [[gnu::weak]] void* dlsym(void*, const char*) noexcept;

namespace hm {

constinit Unwinder unwinder;

namespace {

using Rule = Unwinder::Rule;

constexpr uint8_t kRelative4 = 0x1b;                       // DW_EH_PE_pcrel | sdata4, how linkers write addresses today
constexpr uint64_t kBp = 6, kSp = 7, kReturnAddress = 16;  // numbers of registers in the tables
constexpr int64_t kWord = sizeof(void*);

// Reads a table from its start to its end; beyond that it reads zeros, and has failed.
class Reader {
 public:
  Reader(const uint8_t* at, const uint8_t* end) noexcept : at_(at), end_(end) {}
  const uint8_t* at() const noexcept { return at_; }
  bool more() const noexcept { return at_ < end_; }
  bool failed() const noexcept { return failed_; }
  template <class T>
  T get() noexcept {
    T value{};
    const uint8_t* from = at_;
    if (skip(sizeof(T)); !failed_) memcpy(&value, from, sizeof(T));
    return value;
  }
  void skip(uint64_t bytes) noexcept {
    failed_ = failed_ || bytes > static_cast<uint64_t>(end_ - at_);
    at_ = failed_ ? end_ : at_ + bytes;
  }
  uint64_t leb() noexcept {
    uint64_t value = 0;
    uint8_t byte = 0x80;
    for (int shift = 0; byte & 0x80 && shift < 63; shift += 7) value |= uint64_t{(byte = get<uint8_t>()) & 0x7fu} << shift;
    return value;
  }
  int64_t signed_leb() noexcept {
    uint64_t value = 0;
    uint8_t byte = 0x80;
    int shift = 0;
    for (; byte & 0x80 && shift < 63; shift += 7) value |= uint64_t{(byte = get<uint8_t>()) & 0x7fu} << shift;
    if (byte & 0x40 && shift < 64) value |= ~uint64_t{0} << shift;
    return static_cast<int64_t>(value);
  }
  // Of something with its length in front: a reader of what follows.
  Reader record() noexcept {
    uint64_t length = get<uint32_t>();
    const uint8_t* from = at_;
    skip(length);
    return failed_ || length == UINT32_MAX ? Reader(from, from) : Reader(from, at_);
  }

 private:
  const uint8_t *at_, *end_;
  bool failed_ = false;
};

// What a function's entry says about one place in it: where the caller's frame is, and the registers that it saved there.
struct Row {
  enum Place : uint8_t { kSame, kSaved, kUndefined, kElsewhere };
  struct Register {
    Place place = kSame;
    int64_t offset = 0;  // from the caller's frame, if it is saved
  };
  uint64_t base = 0;  // the number of a register
  int64_t frame = 0;  // from there to the caller's frame
  bool computed = false;
  Register bp, sp, return_address;

  Register* of(uint64_t number) noexcept {
    return number == kBp ? &bp : number == kSp ? &sp : number == kReturnAddress ? &return_address : nullptr;
  }
  void set(uint64_t number, Place place, int64_t offset = 0) noexcept {
    if (Register* found = of(number)) *found = {place, offset};
  }
  void restore(uint64_t number, Row& first) noexcept {
    if (Register* found = of(number)) *found = *first.of(number);
  }
};

// What entries of one kind have in common.
struct Common {
  uint64_t code_unit = 0;
  int64_t data_unit = 0;
  bool understood = false;
  Reader program{nullptr, nullptr};

  explicit Common(Reader in) noexcept : program(in) {
    if (in.get<uint32_t>() != 0) return;
    uint8_t version = in.get<uint8_t>();
    const auto* letters = reinterpret_cast<const char*>(in.at());
    while (in.get<char>() != '\0') {}
    code_unit = in.leb();
    data_unit = in.signed_leb();
    uint64_t returns = version == 1 ? in.get<uint8_t>() : in.leb();
    if (*letters++ != 'z' || (version != 1 && version != 3) || returns != kReturnAddress) return;
    uint64_t length = in.leb();
    const uint8_t* from = in.at();
    in.skip(length);
    for (Reader rest(from, in.at()); *letters != '\0'; ++letters) {
      uint8_t encoding = *letters == 'R' || *letters == 'P' || *letters == 'L' ? rest.get<uint8_t>() : uint8_t{0};
      if (*letters == 'P') rest.skip((encoding & 0x0f) == 0x0b || (encoding & 0x0f) == 0x03 ? 4 : kWord);
      if (*letters == 'R' && encoding != kRelative4) return;
      if (encoding == 0 || rest.failed()) return;  // S: a signal's frame
    }
    program = in;
    understood = !in.failed();
  }
};

// Runs a program of the tables up to a place, so many bytes into the function, and leaves the reader there.  False: it has
// something rare in it.
bool run(Reader& in, const Common& common, uint64_t place, Row& row, Row& first) noexcept {
  constexpr size_t kMostSaved = 8;
  Row saved[kMostSaved];
  size_t depth = 0;
  uint64_t here = 0;
  while (in.more() && !in.failed()) {
    uint8_t code = in.get<uint8_t>(), low = code & 0x3f;
    uint64_t step = 0, number;
    switch (code & 0xc0 ? code & 0xc0 : code) {
      case 0x40: step = low; break;                                                                    // advance_loc
      case 0x80: row.set(low, Row::kSaved, static_cast<int64_t>(in.leb()) * common.data_unit); break;  // offset
      case 0xc0: row.restore(low, first); break;                                                       // restore
      case 0x00: break;                                                                                // nop
      case 0x02: step = in.get<uint8_t>(); break;                                                      // advance_loc1, 2, 4
      case 0x03: step = in.get<uint16_t>(); break;
      case 0x04: step = in.get<uint32_t>(); break;
      case 0x05:  // offset_extended
        number = in.leb();
        row.set(number, Row::kSaved, static_cast<int64_t>(in.leb()) * common.data_unit);
        break;
      case 0x06: row.restore(in.leb(), first); break;        // restore_extended
      case 0x07: row.set(in.leb(), Row::kUndefined); break;  // undefined
      case 0x08: row.set(in.leb(), Row::kSame); break;       // same_value
      case 0x09:                                             // register
        row.set(in.leb(), Row::kElsewhere);
        in.leb();
        break;
      case 0x0a:  // remember_state
        if (depth == kMostSaved) return false;
        saved[depth++] = row;
        break;
      case 0x0b:  // restore_state
        if (depth == 0) return false;
        row = saved[--depth];
        break;
      case 0x0c:  // def_cfa
        row.base = in.leb();
        row.frame = static_cast<int64_t>(in.leb());
        row.computed = false;
        break;
      case 0x0d: row.base = in.leb(); break;                         // def_cfa_register
      case 0x0e: row.frame = static_cast<int64_t>(in.leb()); break;  // def_cfa_offset
      case 0x0f:                                                     // def_cfa_expression
        row.computed = true;
        in.skip(in.leb());
        break;
      case 0x10:  // expression and val_expression
      case 0x16:
        row.set(in.leb(), Row::kElsewhere);
        in.skip(in.leb());
        break;
      case 0x2e: in.leb(); break;  // GNU_args_size
      default: return false;
    }
    here += step * common.code_unit;
    if (here > place) return true;
  }
  return !in.failed();
}

// The sorted table of an object's functions, which its linker made.
struct Functions {
  struct Function {
    int32_t start, entry;  // from the beginning of the tables
  };
  const uint8_t* tables;
  uint32_t count = 0;  // 0: there is none, or it is of another kind

  explicit Functions(const uint8_t* at) noexcept : tables(at) {
    if (tables[0] == 1 && tables[1] == kRelative4 && tables[2] == 0x03 && tables[3] == 0x3b)
      memcpy(&count, tables + 8, sizeof count);
  }
  const Function& operator[](size_t slot) const noexcept { return reinterpret_cast<const Function*>(tables + 12)[slot]; }
  const uint8_t* entry(size_t slot) const noexcept { return tables + (*this)[slot].entry; }
  // Of the last function that does not begin behind the place; `count`: there is none.
  size_t slot_of(uintptr_t place) const noexcept {
    auto offset = static_cast<int64_t>(place - address_of(tables));
    size_t from = 0, to = count;
    while (to - from > 1) {
      size_t middle = from + (to - from) / 2;
      ((*this)[middle].start <= offset ? from : to) = middle;
    }
    return count == 0 || (*this)[from].start > offset ? count : from;
  }
};

uint32_t word_of(const uint8_t* at) noexcept {
  uint32_t word;
  memcpy(&word, at, sizeof word);
  return word;
}
// Of an entry, or of what entries have in common.
size_t length_of(const uint8_t* record) noexcept { return sizeof(uint32_t) + word_of(record); }
const uint8_t* common_of(const uint8_t* entry) noexcept {
  return entry + sizeof(uint32_t) - word_of(entry + sizeof(uint32_t));
}

uint64_t digest_of(const uint8_t* from, size_t bytes, uint64_t before) noexcept {
  uint64_t digest = before ^ bytes;
  for (size_t i = 0; i + sizeof(uint32_t) <= bytes; i += sizeof(uint32_t))
    digest = (digest ^ word_of(from + i)) * 0xd6e8feb86659fd93;
  return digest;
}

// Of all that a rule follows from.  Reads no more of the entry than there is.
constexpr size_t kMostRead = 512, kMostInCommon = 64;
uint64_t digest_of(const uint8_t* entry, size_t read) noexcept {
  const uint8_t* common = common_of(entry);
  return digest_of(common, std::min(length_of(common), kMostInCommon),
                   digest_of(entry, std::min(read, length_of(entry)), 0));
}

void work_out(Rule& rule, uintptr_t place) noexcept {
  rule.kind = Rule::kUnknown;
  const uint8_t *entry = rule.entry, *common_at = common_of(entry);
  Reader in = Reader(entry, entry + length_of(entry)).record();
  in.get<uint32_t>();
  Common common(Reader(common_at, common_at + length_of(common_at)).record());
  const uint8_t* start_field = in.at();
  uintptr_t start = address_of(start_field) + static_cast<uintptr_t>(intptr_t{in.get<int32_t>()});
  uint64_t length = in.get<uint32_t>();
  in.skip(in.leb());
  if (!common.understood || in.failed() || place - start >= length) return;
  Row row, first;
  if (!run(common.program, common, UINT64_MAX, row, first)) return;
  first = row;
  if (!run(in, common, place - start, row, first)) return;
  auto read = static_cast<size_t>(in.at() - entry) + sizeof(uint32_t) - 1;  // whole words
  if (read > kMostRead || length_of(common_at) > kMostInCommon) rule.address = 0;
  rule.read = static_cast<uint32_t>(std::min(read, kMostRead));
  if (row.return_address.place == Row::kUndefined) {
    rule.kind = Rule::kOutermost;
    return;
  }
  bool fits = row.frame == static_cast<int32_t>(row.frame) && row.bp.offset == static_cast<int32_t>(row.bp.offset);
  bool usual = row.return_address.place == Row::kSaved && row.return_address.offset == -kWord &&
               row.sp.place == Row::kSame && !row.computed;
  if (!fits || !usual || (row.bp.place != Row::kSame && row.bp.place != Row::kSaved)) return;
  rule.frame = static_cast<int32_t>(row.frame);
  rule.saved_bp = static_cast<int32_t>(row.bp.offset);
  rule.saves_bp = row.bp.place == Row::kSaved;
  if (row.base == kSp) rule.kind = Rule::kBySp;
  if (row.base == kBp) rule.kind = Rule::kByBp;
}

uintptr_t word_at(uintptr_t address) noexcept { return *reinterpret_cast<const uintptr_t*>(address); }

}  // namespace

// What is called last before `address`: a call may be the last instruction of its function.
const Rule& Unwinder::rule_of(uintptr_t address, dl_find_object& object) noexcept {
  static constinit const Rule unknown;
  auto* place = reinterpret_cast<void*>(address - 1);
  if (place < object.dlfo_map_start || place >= object.dlfo_map_end) {
    if (find_object_(place, &object) != 0) return object = {}, unknown;
  }
  const auto* tables = static_cast<const uint8_t*>(object.dlfo_eh_frame);
  if (tables == nullptr) return unknown;
  Functions functions(tables);
  Rule& rule = rules_[mix(address) % kRules];
  bool same = rule.address == address && rule.tables == tables && rule.slot < functions.count &&
              functions.entry(rule.slot) == rule.entry;
  if (same && digest_of(rule.entry, rule.read) == rule.digest) return rule;
  size_t slot = functions.slot_of(address - 1);
  if (slot == functions.count) return unknown;
  rule = {.address = address, .tables = tables, .entry = functions.entry(slot), .slot = slot};
  work_out(rule, address - 1);
  rule.digest = digest_of(rule.entry, rule.read);
  return rule;
}

bool Unwinder::is_prepared() noexcept {
  LockGuard guard(lock_);
  return find_object_ != nullptr && rules_.size() != 0;
}

// Once: in the child of a fork the loader may be in the middle of what another thread did.
void Unwinder::prepare() noexcept {
  if (is_prepared() || dlsym == nullptr) return;
  // By its name, because a library that asks for its version is not loaded where the C library is older.
  void* found = dlsym(RTLD_DEFAULT, "_dl_find_object");
  LockGuard guard(lock_);
  find_object_ = reinterpret_cast<decltype(find_object_)>(found);  // takes no lock itself
  rules_.reserve(kRules);
}

HM_NOINLINE size_t Unwinder::walk(uintptr_t* frames, size_t most) noexcept {
  TryLockGuard guard(lock_);
  if (!guard.holds() || rules_.size() == 0 || find_object_ == nullptr) return 0;
  dl_find_object object{};
  uintptr_t address, sp, bp;
  asm volatile("lea 0(%%rip), %0\n\tmov %%rsp, %1\n\tmov %%rbp, %2" : "=a"(address), "=d"(sp), "=c"(bp));
  for (size_t n = 0;;) {
    const Rule& rule = rule_of(address, object);
    if (rule.kind == Rule::kUnknown) return 0;
    if (rule.kind == Rule::kOutermost) return n;
    uintptr_t frame = (rule.kind == Rule::kBySp ? sp : bp) + static_cast<uintptr_t>(intptr_t{rule.frame});
    if (frame <= sp || frame % kWord != 0) return 0;
    address = word_at(frame - kWord);
    if (rule.saves_bp) bp = word_at(frame + static_cast<uintptr_t>(intptr_t{rule.saved_bp}));
    sp = frame;
    if (address == 0) return n;
    frames[n++] = address;
    if (n == most) return n;
  }
}

void Unwinder::repair(uint32_t before) noexcept {
  repair_after_fork(lock_, before, [this] {  // one of them may be half written
    for (size_t i = 0; i < rules_.size(); ++i) rules_[i].address = 0;
  });
}

}  // namespace hm

#else

namespace hm {

constinit Unwinder unwinder;
void Unwinder::prepare() noexcept {}
size_t Unwinder::walk(uintptr_t*, size_t) noexcept { return 0; }
void Unwinder::repair(uint32_t) noexcept {}

}  // namespace hm

#endif
