// What the compilers of the family `programs` are given: most of what a C++ program includes, and a use of it.
#include <algorithm>
#include <functional>
#include <iostream>
#include <map>
#include <numeric>
#include <sstream>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

int main(int count, char** words) {
  std::map<std::string, std::vector<int>> lengths;
  std::unordered_map<std::string, std::variant<int, std::string>> known;
  for (int i = 0; i < count; ++i) {
    lengths[words[i]].push_back(i);
    known[words[i]] = i;
  }
  std::ostringstream said;
  for (auto& [word, places] : lengths) {
    std::sort(places.begin(), places.end());
    said << word << std::accumulate(places.begin(), places.end(), 0);
  }
  return static_cast<int>(said.str().size() + known.size()) & 1;
}
