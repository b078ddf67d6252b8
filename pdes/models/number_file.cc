#include "models/number_file.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstddef>
#include <fstream>
#include <string_view>
#include <system_error>

#include "pdes/options.h"

namespace {

constexpr std::string_view kBetween = " \t\r,";
constexpr std::size_t kShown = 30;  // characters

std::vector<std::string_view> words_of(std::string_view line) {
  line = line.substr(0, line.find('#'));
  std::vector<std::string_view> words;
  for (std::size_t at = 0; (at = line.find_first_not_of(kBetween, at)) != std::string_view::npos;) {
    words.push_back(line.substr(at, line.find_first_of(kBetween, at) - at));
    at += words.back().size();
  }
  return words;
}

bool names_columns(const std::vector<std::string_view>& words, const std::vector<Column>& columns) {
  bool same = words.size() >= columns.size();
  for (std::size_t i = 0; same && i < columns.size(); ++i) same = words[i] == columns[i].name;
  return same;
}

// Of what is no number, as much as fits a line, and nothing that a terminal would obey.
std::string shown(std::string_view word) {
  std::string text(word.substr(0, kShown));
  std::replace_if(text.begin(), text.end(), [](unsigned char c) { return std::iscntrl(c) != 0; }, '?');
  return "'" + text + "'";
}

std::uint64_t number_of(std::string_view word, const Column& column) {
  std::uint64_t value = 0;
  const auto [stopped, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error == std::errc{} && stopped == word.data() + word.size() && value <= column.most) return value;
  throw pdes::Error(shown(word) + " is not a whole number from 0 to " + std::to_string(column.most) + " (" + column.name +
                    ")");
}

std::vector<std::uint64_t> row_of(const std::vector<std::string_view>& words, const std::vector<Column>& columns,
                                  Rest rest) {
  std::vector<std::uint64_t> row;
  for (const Column& column : columns) {
    if (row.size() == words.size()) throw pdes::Error("there is no number '" + std::string(column.name) + "'");
    row.push_back(number_of(words[row.size()], column));
  }
  if (rest == Rest::refused && words.size() > row.size()) throw pdes::Error(shown(words[row.size()]) + " is too much");
  return row;
}

}  // namespace

void read_rows(const std::string& path, const std::vector<Column>& columns, Rest rest,
               const std::function<void(const std::vector<std::uint64_t>&)>& take) {
  std::ifstream file(path);
  std::string line;
  for (std::size_t number = 1; std::getline(file, line); ++number) {
    try {
      const auto words = words_of(line);
      if (words.empty() || (number == 1 && names_columns(words, columns))) continue;
      take(row_of(words, columns, rest));
    } catch (const pdes::Error& error) { throw pdes::Error(path + ":" + std::to_string(number) + ": " + error.what()); }
  }
  if (!file.eof()) throw pdes::Error(path + ": cannot be read");
}
