#include "decode.h"

#include <cstring>
#include <string_view>

#include "marks.h"

namespace cores {

namespace {

constexpr unsigned char kLock = 0xf0;
constexpr std::string_view kOtherPrefixes = "\x26\x2e\x36\x3e\x64\x65\x66\x67\xf2\xf3";
constexpr std::string_view kLongNop = "\x0f\x1f\x80";  // nopl with a displacement of 32 bits off rax

std::string_view bytes_of(const void* instruction, std::size_t bytes) {
  return {static_cast<const char*>(instruction), bytes};
}

}  // namespace

Mark mark_in(const void* instruction, std::size_t bytes) {
  std::string_view text = bytes_of(instruction, bytes);
  std::uint32_t displacement = 0;
  if (!text.starts_with(kLongNop) || bytes != kLongNop.size() + sizeof displacement) return Mark::none;
  std::memcpy(&displacement, text.data() + kLongNop.size(), sizeof displacement);
  return displacement == kMarkEnter ? Mark::enter : displacement == kMarkLeave ? Mark::leave : Mark::none;
}

bool is_locked(const void* instruction, std::size_t bytes) {
  std::string_view text = bytes_of(instruction, bytes);
  auto at = [text](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  std::size_t i = 0;
  for (; i < text.size(); ++i) {
    if (at(i) == kLock) return true;
    if (kOtherPrefixes.find(text[i]) == std::string_view::npos) break;
  }
  if ((at(i) & 0xf0) == 0x40) ++i;  // REX
  bool exchanges = (at(i) & 0xfe) == 0x86;
  bool with_memory = at(i + 1) < 0xc0;
  return exchanges && with_memory;
}

}  // namespace cores
