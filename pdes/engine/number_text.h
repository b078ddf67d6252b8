// Times in messages.
#pragma once

#include <cstdio>
#include <string>

namespace pdes {

inline std::string text_of(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.10g", value);
  return text;
}

}  // namespace pdes
