#include "app/text.h"

#include <array>
#include <cmath>
#include <cstdarg>
#include <cstdio>

namespace pdes::app {

std::string text(const char* format, ...) {
  std::array<char, 512> buffer;
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(buffer.data(), buffer.size(), format, arguments);
  va_end(arguments);
  return buffer.data();
}

std::string grouped(std::uint64_t number) {
  std::string digits = std::to_string(number);
  for (std::size_t place = digits.size(); place > 3;) digits.insert(place -= 3, 1, ',');
  return digits;
}

namespace {

// Three digits, in the unit in which the number is at least 1.
template <std::size_t N>
std::string scaled(double number, double step, const std::array<const char*, N>& units) {
  std::size_t unit = 0;
  while (std::abs(number) >= step && unit + 1 < N) number /= step, ++unit;
  int places = number >= 100 || number == std::floor(number) ? 0 : number >= 10 ? 1 : 2;
  return text("%.*f%s", places, number, units[unit]);
}

}  // namespace

std::string short_number(double number) { return scaled(number, 1000, std::array{"", " k", " M", " G", " T"}); }

std::string short_bytes(double bytes) { return scaled(bytes, 1024, std::array{" B", " KiB", " MiB", " GiB", " TiB"}); }

std::string duration(double seconds) {
  if (seconds < 100) return text("%.*f s", seconds < 10 ? 1 : 0, seconds);
  double minutes = std::round(seconds / 60);
  if (minutes < 60) return text("%.0f min", minutes);
  return text("%.0f h %02.0f min", std::floor(minutes / 60), std::fmod(minutes, 60));
}

}  // namespace pdes::app
