#include "app/command_line.h"

#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <concepts>
#include <cstring>
#include <filesystem>
#include <limits>
#include <memory>

#include "app/text.h"

namespace pdes::app {

namespace {

template <class Number>
std::string shown(Number value) {
  if constexpr (std::floating_point<Number>) return app::text("%g", value);
  else return std::to_string(value);
}

template <class Number>
std::string wanted(Number least, Number most) {
  constexpr Number kSmallest = std::numeric_limits<Number>::lowest(), kLargest = std::numeric_limits<Number>::max();
  if constexpr (std::integral<Number>) return "a whole number from " + shown(least) + " to " + shown(most);
  if (least == kSmallest && most == kLargest) return "a number";
  if (most == kLargest) return "a number of at least " + shown(least);
  return "a number from " + shown(least) + " to " + shown(most);
}

// Text that is no number, and not-a-number, is outside every range.
template <class Number>
Number number_in(const std::string& text, Number least, Number most) {
  Number value{};
  const char* end = text.data() + text.size();
  auto [stopped, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || stopped != end || !(value >= least && value <= most))
    throw Error("'" + text + "' is not " + wanted(least, most));
  return value;
}

std::size_t size_of(const std::string& text) {
  std::string bytes = text;
  try {
    const bool digit = text.find_first_of("0123456789") == 0;  // CLI11 takes a unit without a number for one of it
    if (digit && CLI::AsSizeValue(false)(bytes).empty())
      return number_in<std::size_t>(bytes, 0, std::numeric_limits<std::size_t>::max());
  } catch (const CLI::ValidationError&) {  // an unknown unit
  }
  throw Error("'" + text + "' is not a size like 512M or 2G");
}

double seconds_of(const std::string& text, double least, double most) {
  static const std::pair<std::string_view, double> kUnits[] = {{"ms", 1e-3}, {"min", 60}, {"h", 3600}, {"s", 1}};
  std::string number = text;
  double unit = 1;
  for (const auto& [name, seconds] : kUnits) {
    if (!text.ends_with(name)) continue;
    number.resize(text.size() - name.size());
    unit = seconds;
    break;
  }
  try {
    double seconds = unit * number_in(number, 0.0, std::numeric_limits<double>::max());
    if (seconds >= least && seconds <= most) return seconds;
  } catch (const Error&) {  // no number
  }
  throw Error("'" + text + "' is not a time like 10s, 500ms, 5min or 2h, from " + shown(least) + " to " + shown(most) +
              " s");
}

}  // namespace

CommandLine::CommandLine(const std::string& program, const std::string& description) : cli_(description, program) {
  cli_.set_help_flag();
  cli_.get_formatter()->column_width(36);
}

CLI::Option* CommandLine::add(const std::string& name, const std::string& unit, const std::string& help,
                              const std::string& standard, std::function<void(const std::string&)> take) {
  std::string option = "--" + name;
  auto call = [option, take = std::move(take)](const std::string& given) {
    try {
      take(given);
    } catch (const Error& error) { throw Error(option + ": " + error.what()); }
  };
  return cli_.add_option_function<std::string>(option, call, standard.empty() ? help : help + " (" + standard + ")")
      ->option_text(unit)
      ->type_name(unit)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast)
      ->group(group_);
}

template <class Number>
void CommandLine::number(const std::string& name, Number& value, const std::string& unit, const std::string& help,
                         Number least, Number most) {
  add(name, unit, help, shown(value),
      [&value, least, most](const std::string& given) { value = number_in(given, least, most); });
  remember(name, [&value] { return Json(value); });
}
template void CommandLine::number(const std::string&, double&, const std::string&, const std::string&, double, double);
template void CommandLine::number(const std::string&, std::uint32_t&, const std::string&, const std::string&, std::uint32_t,
                                  std::uint32_t);
template void CommandLine::number(const std::string&, std::uint64_t&, const std::string&, const std::string&, std::uint64_t,
                                  std::uint64_t);

void CommandLine::size(const std::string& name, std::size_t& bytes, const std::string& help) {
  add(name, "SIZE", help, "", [&bytes](const std::string& given) { bytes = size_of(given); });
  remember(name, [&bytes] { return Json(bytes); });
}

void CommandLine::time(const std::string& name, double& seconds, const std::string& help, double least, double most) {
  add(name, "TIME", help, shown(seconds),
      [&seconds, least, most](const std::string& given) { seconds = seconds_of(given, least, most); });
  remember(name, [&seconds] { return Json(seconds); });
}

void CommandLine::text(const std::string& name, std::string& value, const std::string& unit, const std::string& help) {
  add(name, unit, help, value, [&value](const std::string& given) { value = given; });
  remember(name, [&value] { return Json(value); });
}

// It is not opened, for it may be a pipe.
void CommandLine::file(const std::string& name, std::string& path, const std::string& help) {
  add(name, "FILE", help, path, [&path](const std::string& given) {
    if (access(given.c_str(), R_OK) != 0) throw Error("'" + given + "' cannot be read: " + std::strerror(errno));
    if (std::filesystem::is_directory(given)) throw Error("'" + given + "' is a folder");
    path = given;
  });
  remember(name, [&path] { return Json(path); });
}

void CommandLine::flag(const std::string& name, bool& value, const std::string& help) {
  cli_.add_flag("--" + name, value, help)->multi_option_policy(CLI::MultiOptionPolicy::TakeLast)->group(group_);
  remember(name, [&value] { return Json(value); });
}

void CommandLine::choice(const std::string& name, std::vector<std::string> names, std::size_t now, const std::string& help,
                         std::function<void(std::size_t)> set) {
  std::string all;
  for (const std::string& each : names) all += (all.empty() ? "" : "|") + each;
  auto chosen = std::make_shared<std::size_t>(now);
  remember(name, [chosen, names] { return Json(names[*chosen]); });
  add(name, all, help, names.at(now), [chosen, names, all, set = std::move(set)](const std::string& given) {
    auto found = std::find(names.begin(), names.end(), given);
    if (found == names.end()) throw Error("'" + given + "' is not one of " + all);
    *chosen = static_cast<std::size_t>(found - names.begin());
    set(*chosen);
  });
}

bool CommandLine::parse(int argc, char** argv) {
  cli_.set_help_flag("-h,--help", "this text")->group(group_);
  try {
    cli_.parse(argc, argv);
  } catch (const CLI::CallForHelp&) { return false; } catch (const CLI::ParseError& error) {
    throw Error(std::string(error.what()) + " (see --help)");
  }
  return true;
}

// CLI11 leaves two empty lines between groups.
std::string CommandLine::help() const {
  std::string text = cli_.help();
  for (std::size_t at; (at = text.find("\n\n\n")) != std::string::npos;) text.erase(at, 1);
  return text;
}

Json CommandLine::values(const std::string& group) const {
  Json found = Json::object();
  for (const Option& option : options_)
    if (option.group == group) found[option.name] = option.value();
  return found;
}

std::string one_line(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

}  // namespace pdes::app
