// The C++ run-time library linked in beside hmalloc: one set of operators must serve both.
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "case.h"
#include "hmalloc/hmalloc.h"

namespace {

void work() {
  std::map<int, std::string> lines;
  for (int i = 0; i < 20000; i++) lines[i * 7919 % 5000] += std::string(static_cast<std::size_t>(i % 50), 'x');
  std::vector<std::string> copies(2000, lines.at(0));
}

CASE(linked) {
  hm_stats before{};
  hm_stats_get(&before);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; i++) threads.emplace_back(work);
  for (auto& thread : threads) thread.join();
  std::vector<char> large(30 * MIB, 'a');
  hm_stats after{};
  hm_stats_get(&after);
  REQUIRE(after.mapped > before.mapped && large.back() == 'a');
  bool refused = false;
  try {
    hidden(::operator new(hidden_size(SIZE_MAX / 2)));
  } catch (const std::bad_alloc&) { refused = true; }
  REQUIRE(refused);
}

}  // namespace

CASE_MAIN()
