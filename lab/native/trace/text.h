// Numbers for people.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hm::trace {

std::string grouped(uint64_t number);               // 1 234 567
std::string bytes_text(uint64_t bytes);             // 1.5 MB, in powers of 1024
std::string time_text(double nanoseconds);          // 1.5 ms
std::string share_text(double part, double whole);  // 12.3 %
std::vector<std::string> split(std::string_view text, char separator);

}  // namespace hm::trace
