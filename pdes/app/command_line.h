// The command line of a program, on CLI11: grouped options, defaults shown in the help, one Error for any mistake.
#pragma once

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "pdes/options.h"

namespace pdes::app {

using Json = nlohmann::ordered_json;

// The names that a user may give to each value of an enumeration.
template <class Value>
using Named = std::vector<std::pair<std::string, Value>>;

template <class Value>
const std::string& name_of(const Named<Value>& named, Value value) {
  for (const auto& [name, meant] : named)
    if (meant == value) return name;
  return named.front().first;
}

std::string one_line(const Json& json);  // of any bytes that the user passed

class CommandLine {
 public:
  CommandLine(const std::string& program, const std::string& description);

  void group(std::string title) { group_ = std::move(title); }  // of the following options

  // Number: double, or an unsigned integer.
  template <class Number>
  void number(const std::string& name, Number& value, const std::string& unit, const std::string& help, Number least,
              Number most);
  void size(const std::string& name, std::size_t& bytes, const std::string& help);
  // Of the clock on the wall: 10s, 500ms, 5min, 2h, or a number of seconds.
  void time(const std::string& name, double& seconds, const std::string& help, double least, double most);
  void text(const std::string& name, std::string& value, const std::string& unit, const std::string& help);
  void file(const std::string& name, std::string& path, const std::string& help);  // one that can be read
  void flag(const std::string& name, bool& value, const std::string& help);
  void choice(const std::string& name, std::vector<std::string> names, std::size_t now, const std::string& help,
              std::function<void(std::size_t)> set);
  template <class Value>
  void choice(const std::string& name, Value& value, const Named<Value>& named, const std::string& help) {
    std::vector<std::string> names;
    std::size_t now = 0;
    for (const auto& [text, meant] : named) {
      if (meant == value) now = names.size();
      names.push_back(text);
    }
    choice(name, std::move(names), now, help, [&value, &named](std::size_t chosen) { value = named[chosen].second; });
  }

  // False if help was requested and should be printed.  Throws Error.
  bool parse(int argc, char** argv);
  bool given(const std::string& name) const { return cli_.count("--" + name) > 0; }
  std::string help() const;

  // The options of a group with their values.
  Json values(const std::string& group) const;

 private:
  CLI::Option* add(const std::string& name, const std::string& unit, const std::string& help, const std::string& standard,
                   std::function<void(const std::string&)> take);

  CLI::App cli_;
  std::string group_;
  void remember(const std::string& name, std::function<Json()> value) {
    options_.push_back({group_, name, std::move(value)});
  }

  struct Option {
    std::string group, name;
    std::function<Json()> value;
  };
  std::vector<Option> options_;
};

}  // namespace pdes::app
