// The arguments of a workload: --name value, in any order.
//
// Reading an argument makes its name known; finish(), called before work begins, refuses the rest.  Any mistake ends
// the program: one line on standard error, exit status 2.
#pragma once

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace bench {

class Arguments {
 public:
  Arguments(int count, char** values) : program_(values[0]) {
    program_.remove_prefix(program_.rfind('/') + 1);  // npos + 1 is 0
    for (int i = 1; i < count; i += 2) {
      std::string_view name = values[i];
      if (!name.starts_with("--")) refuse(std::string("'").append(name) + "' is no argument: --NAME VALUE is");
      if (i + 1 == count) refuse(std::string(name) + " needs a value");
      given_.push_back({name.substr(2), values[i + 1]});
    }
  }

  std::uint32_t count(std::string_view name, std::uint32_t otherwise, std::uint32_t least = 1,
                      std::uint32_t most = std::numeric_limits<std::uint32_t>::max()) {
    return number(name, otherwise, least, most, "a whole number");
  }
  unsigned threads(unsigned otherwise = 1, unsigned least = 1) { return count("threads", otherwise, least, 10'000); }
  bool flag(std::string_view name) { return count(name, 0, 0, 1) != 0; }
  double real(std::string_view name, double otherwise, double least, double most) {
    return number(name, otherwise, least, most, "a number");
  }
  double seconds(std::string_view name, double otherwise) { return number(name, otherwise, 1e-6, 1e6, "seconds"); }

  std::string text(std::string_view name, std::string_view otherwise) { return std::string(take(name).value_or(otherwise)); }
  // The first choice is the default.
  std::string choice(std::string_view name, std::initializer_list<std::string_view> choices) {
    std::string_view value = take(name).value_or(*choices.begin());
    if (std::find(choices.begin(), choices.end(), value) != choices.end()) return std::string(value);
    std::string all;
    for (std::string_view each : choices) all += (all.empty() ? "" : ", ") + std::string(each);
    refuse("--" + std::string(name) + " is one of " + all + "; not '" + std::string(value) + "'");
  }

  void finish() const {
    for (const Given& given : given_) {
      if (!given.taken) refuse("unknown or repeated argument --" + std::string(given.name));
    }
  }

  // For mistakes that only the program can detect: values that do not go together.
  [[noreturn]] void refuse(const std::string& reason) const {
    std::fprintf(stderr, "%.*s: %s\n", static_cast<int>(program_.size()), program_.data(), reason.c_str());
    std::exit(2);
  }

 private:
  struct Given {
    std::string_view name;
    std::string_view value;
    bool taken = false;
  };

  std::optional<std::string_view> take(std::string_view name) {
    for (Given& given : given_) {
      if (given.name != name) continue;
      given.taken = true;
      return given.value;
    }
    return std::nullopt;
  }

  template <class Number>
  Number number(std::string_view name, Number otherwise, Number least, Number most, const char* kind) {
    std::optional<std::string_view> text = take(name);
    if (!text) return otherwise;
    Number value{};
    auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
    // Written so that "nan" is also refused.
    if (error == std::errc{} && end == text->data() + text->size() && value >= least && value <= most) return value;
    char limits[64];
    std::snprintf(limits, sizeof limits, "%.10g to %.10g", static_cast<double>(least), static_cast<double>(most));
    refuse("--" + std::string(name) + " needs " + kind + " from " + limits + ", not '" + std::string(*text) + "'");
  }

  std::string_view program_;
  std::vector<Given> given_;
};

}  // namespace bench
