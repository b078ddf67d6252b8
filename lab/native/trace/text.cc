#include "text.h"

#include <array>
#include <cstdio>

namespace hm::trace {
namespace {

std::string with_unit(double number, double step, const std::string* unit, size_t units) {
  size_t index = 0;
  for (; index + 1 < units && number >= step; ++index) number /= step;
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), index == 0 || number >= 100 ? "%.0f" : "%.1f", number);
  return text.data() + (" " + unit[index]);
}

}  // namespace

std::string grouped(uint64_t number) {
  std::string digits = std::to_string(number);
  for (size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, " ");
  return digits;
}

std::string bytes_text(uint64_t bytes) {
  static const std::array<std::string, 5> kUnits{"B", "KB", "MB", "GB", "TB"};
  return with_unit(static_cast<double>(bytes), 1024, kUnits.data(), kUnits.size());
}

std::string time_text(double nanoseconds) {
  static const std::array<std::string, 4> kUnits{"ns", "us", "ms", "s"};
  return with_unit(nanoseconds, 1000, kUnits.data(), kUnits.size());
}

std::string share_text(double part, double whole) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f %%", whole > 0 ? 100 * part / whole : 0.0);
  return text.data();
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (size_t end = 0; end != text.npos; text.remove_prefix(end == text.npos ? text.size() : end + 1)) {
    end = text.find(separator);
    parts.emplace_back(text.substr(0, end));
  }
  return parts;
}

}  // namespace hm::trace
