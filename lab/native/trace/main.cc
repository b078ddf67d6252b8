// hmalloc-trace: records a program's calls of malloc, shows them, and replays them on any malloc.
#include <CLI/CLI.hpp>

#include <cstdio>
#include <new>

#include "info.h"
#include "record.h"
#include "replay.h"
#include "trace.h"

namespace hm::trace {

int guarded(const std::function<void()>& command) {
  try {
    command();
    if (std::fflush(stdout) == 0) return 0;
    throw Failure("the output cannot be written");
  } catch (const Failure& failure) {
    if (*failure.what() != 0) std::fprintf(stderr, "hmalloc trace: %s\n", failure.what());
    return failure.code;
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "hmalloc trace: out of memory\n");
  } catch (const std::exception& failure) { std::fprintf(stderr, "hmalloc trace: %s\n", failure.what()); }
  return 1;
}

}  // namespace hm::trace

using namespace hm::trace;

int main(int argc, char** argv) {
  CLI::App app{"Records what a program asks of malloc, and does it again on any malloc.", "hmalloc-trace"};
  app.require_subcommand(1);
  std::string file;
  int64_t limit = int64_t{1} << 30;
  unsigned repeats = 1;
  bool as_json = false;
  int code = 0;

  CLI::App* recording = app.add_subcommand("record", "run a program and record it")->positionals_at_end();
  recording->add_option("-o,--output", file, "the trace (PROGRAM.hmtrace)");
  recording->add_option("--limit", limit, "stop recording when a process has filled this much (1G)")
      ->transform(CLI::AsSizeValue(false));
  std::vector<std::string> command;
  recording->add_option("PROGRAM", command, "and its arguments")->required();
  recording->callback([&] {
    if (limit < (1 << 20) || limit > (int64_t{1} << 40)) throw Failure("record: --limit is 1M to 1T", 2);
    code = record(command, file, static_cast<uint64_t>(limit));
  });

  CLI::App* looking = app.add_subcommand("info", "what is in a trace");
  looking->add_option("FILE", file)->required();
  looking->add_flag("--json", as_json);
  looking->callback([&] { info(file, as_json); });

  CLI::App* replaying = app.add_subcommand("replay", "do it again on this process's malloc");
  replaying->add_option("FILE", file)->required();
  replaying->add_flag("--json", as_json);
  replaying->add_option("--repeats", repeats)->check(CLI::Range(1u, 1'000'000u));
  replaying->callback([&] { replay(file, repeats, as_json); });

  int failed = guarded([&] {
    try {
      app.parse(argc, argv);
    } catch (const CLI::CallForHelp& help) { app.exit(help); } catch (const CLI::ParseError& error) {
      throw Failure(std::string(error.what()) + " (hmalloc trace --help)", 2);
    }
  });
  return failed != 0 ? failed : code;
}
