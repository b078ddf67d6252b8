// Numbers for people.
#pragma once

#include <cstdint>
#include <string>

namespace pdes::app {

[[gnu::format(printf, 1, 2)]] std::string text(const char* format, ...);
std::string grouped(std::uint64_t number);  // 1,037,386
std::string short_number(double number);    // 23.4 M
std::string short_bytes(double bytes);      // 5.1 MiB
std::string duration(double seconds);       // 1 h 02 min

}  // namespace pdes::app
