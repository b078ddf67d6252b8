#include "foreign/options.h"

#include <algorithm>
#include <charconv>
#include <initializer_list>
#include <string>
#include <system_error>
#include <utility>

namespace pdes {
namespace {

[[noreturn]] void refuse(std::string_view name, std::string_view value) {
  throw Error("option " + std::string(name) + " cannot be '" + std::string(value) + "'");
}

template <class Number>
void read(std::string_view name, std::string_view value, Number& into) {
  const auto [end, error] = std::from_chars(value.begin(), value.end(), into);
  if (error != std::errc() || end != value.end()) refuse(name, value);
}

template <class Choice>
void choose(std::string_view name, std::string_view value, Choice& into,
            std::initializer_list<std::pair<std::string_view, Choice>> choices) {
  for (const auto& [word, choice] : choices) {
    if (word != value) continue;
    into = choice;
    return;
  }
  refuse(name, value);
}

void set(Options& options, std::string_view name, std::string_view value) {
  if (name == "end") return read(name, value, options.end);
  if (name == "lookahead") return read(name, value, options.lookahead);
  if (name == "threads") return read(name, value, options.threads);
  if (name == "seed") return read(name, value, options.seed);
  if (name == "max-memory") return read(name, value, options.max_memory);
  if (name == "max-simultaneous") return read(name, value, options.max_simultaneous);
  if (name == "pace") return read(name, value, options.pace);
  if (name == "interval") return read(name, value, options.progress_interval);
  if (name == "checkpoint-every") return read(name, value, options.checkpoint_every);
  if (name == "checkpoint") return void(options.checkpoint = value);
  if (name == "resume") return void(options.resume = value);
  if (name == "model") return void(options.model = value);
  if (name == "trace") return void(options.trace = value);
  if (name == "lookahead-report") return choose(name, value, options.measure_delays, {{"0", false}, {"1", true}});
  if (name == "critical-path") return choose(name, value, options.measure_path, {{"0", false}, {"1", true}});
  if (name == "pin") return choose(name, value, options.pin, {{"0", false}, {"1", true}});
  if (name == "queue") return choose(name, value, options.queue, {{"wheel", Queue::wheel}, {"heap", Queue::heap}});
  if (name == "sync")
    return choose(name, value, options.sync, {{"windows", Sync::windows}, {"neighbours", Sync::neighbours}});
  if (name == "ties") return choose(name, value, options.ties, {{"source", Ties::by_source}, {"hashed", Ties::hashed}});
  if (name == "generator")
    return choose(name, value, options.generator, {{"splitmix", Generator::splitmix}, {"philox", Generator::philox}});
  if (name == "allocator")
    return choose(name, value, options.allocator,
                  {{"hmalloc", Allocator::hmalloc}, {"malloc", Allocator::malloc}, {"free-list", Allocator::free_list}});
  if (name == "blocks")
    return choose(name, value, options.blocks,
                  {{"automatic", Blocks::automatic}, {"dense", Blocks::dense}, {"lines", Blocks::lines}});
  if (name == "balance")
    return choose(name, value, options.balance,
                  {{"off", Balance::off}, {"threads", Balance::threads}, {"ranks", Balance::ranks}});
  if (name == "balance-by")
    return choose(name, value, options.balance_by, {{"time", BalanceBy::time}, {"events", BalanceBy::events}});
  if (name == "gather")
    return choose(name, value, options.gather,
                  {{"off", Gather::off}, {"automatic", Gather::automatic}, {"always", Gather::always}});
  if (name == "partition")
    return choose(name, value, options.partitioning,
                  {{"blocks", Partitioning::blocks},
                   {"round-robin", Partitioning::round_robin},
                   {"random", Partitioning::random},
                   {"graph", Partitioning::graph}});
  throw Error("there is no option '" + std::string(name) + "'");
}

// Takes a word off the text, to the next space.
std::string taken(std::string_view& text) {
  std::string word;
  for (; !text.empty() && text.front() != ' '; text.remove_prefix(1)) {
    if (text.front() == '\\' && text.size() > 1) text.remove_prefix(1);
    word += text.front();
  }
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  return word;
}

}  // namespace

Options options_of(std::string_view text) {
  Options options;
  while (!text.empty()) {
    const std::string word = taken(text);
    if (word.empty()) continue;
    const std::size_t equals = std::min(word.find('='), word.size());
    set(options, word.substr(0, equals), word.substr(std::min(equals + 1, word.size())));
  }
  return options;
}

}  // namespace pdes
