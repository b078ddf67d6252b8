#include "engine/failure_text.h"

#include <cxxabi.h>

#include <algorithm>
#include <exception>
#include <new>
#include <string_view>

#include "pdes/partition.h"

namespace pdes {
namespace {

std::string on_one_line(std::string_view text) {
  std::string line;
  while (!text.empty()) {
    const std::size_t size = std::min(text.find_first_of("\r\n"), text.size());
    if (size > 0 && !line.empty()) line += ' ';
    line += text.substr(0, size);
    text.remove_prefix(std::min(size + 1, text.size()));
  }
  return line;
}

std::string what_was_thrown() {
  std::string said;
  try {
    throw;
  } catch (const std::bad_alloc&) { return "out of memory"; } catch (const std::exception& failure) {
    said = on_one_line(failure.what());
  } catch (...) {}
  if (!said.empty()) return said;
  const std::type_info* type = abi::__cxa_current_exception_type();
  return "an exception of type " + (type == nullptr ? "unknown" : type_name(*type));
}

}  // namespace

std::string failure_text(const std::string& place) {
  const std::string what = what_was_thrown();
  return what.find(place) == std::string::npos ? place + ": " + what : what;
}

}  // namespace pdes
