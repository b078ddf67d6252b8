// Something for the compiler to chew on.
#include <algorithm>
#include <functional>
#include <iostream>
#include <map>
#include <regex>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

template <int N>
struct Chain {
  std::variant<int, std::string, std::vector<double>> value;
  Chain<N - 1> next;
};
template <>
struct Chain<0> {};

int main() {
  std::map<std::string, std::unordered_map<int, std::vector<std::function<int(int)>>>> table;
  for (int i = 0; i < 100; i++) table["k" + std::to_string(i % 7)][i].push_back([i](int x) { return x * i; });
  Chain<40> chain{};
  chain.next.value = std::string("x");
  std::regex pattern("([a-z]+)([0-9]+)");
  int sum = 0;
  for (auto& [name, rows] : table)
    for (auto& [number, calls] : rows)
      for (auto& call : calls) sum += call(static_cast<int>(name.size()) + std::regex_match(name, pattern));
  std::cout << sum << '\n';
}
