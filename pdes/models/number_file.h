// Files of whole numbers, a row on each line, its numbers parted by blanks or commas.  # begins a comment; a first line
// of the columns' names is passed over.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

struct Column {
  const char* name;
  std::uint64_t most;  // the largest number that makes sense
};
enum class Rest : std::uint8_t { refused, ignored };  // of a line, behind the last column

// Calls take for each row.  Throws pdes::Error, which names the file and the line; so does one that take throws.
void read_rows(const std::string& path, const std::vector<Column>& columns, Rest rest,
               const std::function<void(const std::vector<std::uint64_t>&)>& take);
