#include "pdes/app.h"

#include <errno.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <optional>

#include "app/command_line.h"
#include "app/common.h"
#include "app/interrupt.h"
#include "app/process.h"
#include "app/summary.h"
#include "app/text.h"
#include "app/watch.h"
#include "engine/failure_text.h"
#include "mpi/launched.h"
#include "pdes/mpi.h"

namespace pdes {

// Weak: a program may be linked with hmalloc::pdes-mpi or without.
[[gnu::weak]] std::unique_ptr<Ranks> start_ranks(int* argc, char*** argv);

namespace {

constexpr int kFailed = 1, kCannotStart = 2;
constexpr const char* kOwn = "The model's own";

void flush_output() {
  if (std::fflush(stdout) != 0) throw Error("standard output cannot be written");
}

}  // namespace

struct App::Inside {
  std::string name;
  app::CommandLine line;
  Options options;
  std::function<Time()> lookahead{};
  bool oversubscribe = false;
  app::Output output;
  std::unique_ptr<Ranks> ranks;

  bool first_rank() const noexcept { return ranks == nullptr || ranks->rank() == 0; }
  int say(const std::string& what, int code) const {
    if (first_rank()) std::fprintf(stderr, "%s: %s\n", name.c_str(), what.c_str());
    return code;
  }
  bool parse(int argc, char** argv);
  bool all_start(bool ready);
  int simulate(const std::function<void(Simulation&)>& build, const std::function<void(const Result&, Summary&)>& summarise);
  void tell(const Saved& saved) const;
  void print(const app::Run& run) const;  // throws Error
};

App::App(std::string name, std::string description)
    : inside_(new Inside{std::move(name), {program_invocation_short_name, description}, {}, {}, {}, {}, nullptr}) {
  inside_->line.group(kOwn);
}
App::~App() = default;

App& App::defaults(const Options& options) {
  inside_->options = options;
  return *this;
}

App& App::lookahead(std::function<Time()> least) {
  inside_->lookahead = std::move(least);
  return *this;
}

App& App::option(const std::string& name, double& value, const std::string& help, double least, double most) {
  inside_->line.number(name, value, "NUMBER", help, least, most);
  return *this;
}
App& App::option(const std::string& name, std::uint32_t& value, const std::string& help, std::uint32_t least,
                 std::uint32_t most) {
  inside_->line.number(name, value, "N", help, least, most);
  return *this;
}
App& App::option(const std::string& name, std::uint64_t& value, const std::string& help, std::uint64_t least,
                 std::uint64_t most) {
  inside_->line.number(name, value, "N", help, least, most);
  return *this;
}
App& App::option(const std::string& name, std::string& value, const std::string& help) {
  inside_->line.text(name, value, "TEXT", help);
  return *this;
}
App& App::option(const std::string& name, bool& flag, const std::string& help) {
  inside_->line.flag(name, flag, help);
  return *this;
}
App& App::file(const std::string& name, std::string& path, const std::string& help) {
  inside_->line.file(name, path, help);
  return *this;
}
App& App::choose(const std::string& name, std::vector<std::string> names, std::size_t now, const std::string& help,
                 std::function<void(std::size_t)> set) {
  inside_->line.choice(name, std::move(names), now, help, std::move(set));
  return *this;
}

// False if only help was requested.
bool App::Inside::parse(int argc, char** argv) {
  if (lookahead) options.lookahead = lookahead();  // the help shows it
  app::declare_common(line, options, oversubscribe, output);
  if (line.parse(argc, argv)) {
    if (lookahead && !line.given("lookahead")) options.lookahead = lookahead();
    return true;
  }
  if (first_rank()) std::fputs(line.help().c_str(), stdout);
  flush_output();
  return false;
}

namespace {

// Runs the simulation; an error that ended it early is in the Run afterwards.
void perform(Simulation& simulation, Ranks* ranks, app::Run& run) {
  app::Interrupt interrupt(simulation);
  auto began = std::chrono::steady_clock::now();
  double cpu = app::cpu_seconds();
  try {
    run.result = simulation.run(ranks);
  } catch (const OtherRankFailed& failure) {
    run.error = failure.what();
    run.elsewhere = true;
  } catch (...) { run.error = failure_text(simulation.partial().failed_at); }
  if (!run.error.empty()) run.result = simulation.partial();
  cpu = app::cpu_seconds() - cpu;  // inside the wall clock's interval, so that it cannot exceed that
  std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  run.cpu_share = cpu / (took.count() * run.options.threads);
  run.process = app::this_process();
}

}  // namespace

// Only the first rank opens files, and may fail to.
bool App::Inside::all_start(bool ready) {
  if (ranks == nullptr) return ready;
  std::vector<std::byte> first{std::byte{ready}};
  ranks->broadcast(first);
  return ready && first.at(0) == std::byte{true};
}

int App::Inside::simulate(const std::function<void(Simulation&)>& build,
                          const std::function<void(const Result&, Summary&)>& summarise) {
  if (!options.checkpoint.empty()) app::Interrupt::ignore_requests();
  unsigned asked = options.threads;
  // Threads without a CPU only wait for their turn.  How ranks share CPUs is mpirun's business.
  if (ranks == nullptr && !oversubscribe) options.threads = std::min(asked, allowed_cpus());
  app::Run run{.model = name,
               .parameters = line.values(kOwn),
               .options = {},
               .asked_threads = asked,
               .ranks = ranks == nullptr ? 1 : ranks->count()};
  options.model = name;
  for (const auto& [parameter, value] : run.parameters.items())
    options.model += "\n" + parameter + ": " + app::one_line(value);
  run.options = options;
  std::unique_ptr<Simulation> simulation;
  std::unique_ptr<app::Watch> watch;
  std::string mistake;
  try {
    simulation = std::make_unique<Simulation>(options);
    build(*simulation);
    watch = std::make_unique<app::Watch>(name, first_rank() ? output : app::Output{.live = app::Live::off});
  } catch (...) { mistake = failure_text(); }
  if (!all_start(mistake.empty())) return say(mistake, kCannotStart);
  if (watch->wanted()) simulation->on_progress([&](const Progress& progress) { watch->see(progress); });
  std::optional<Saved> last;
  simulation->on_save([&](const Saved& saved) {
    last = saved;
    watch->erase();
    tell(saved);
  });
  perform(*simulation, ranks.get(), run);
  watch->erase();
  if (run.result.threads.empty()) return say(run.error, kCannotStart);
  if (!run.error.empty() && !run.elsewhere) std::fprintf(stderr, "%s: %s\n", name.c_str(), run.error.c_str());
  int code = run.error.empty() ? 0 : kFailed;
  try {
    if (code == 0 && summarise) summarise(run.result, run.derived);
    if (first_rank()) print(run);
    watch->finish(run);
  } catch (...) { return say(failure_text(), kFailed); }
  if (!run.result.trace_error.empty()) code = say("--trace: " + run.result.trace_error, kFailed);
  if (!run.result.stopped || app::Interrupt::signal() == 0) return code;
  if (!options.checkpoint.empty() && first_rank()) {
    if (!last || !last->error.empty()) return kFailed;
    say("stopped and saved: --resume " + options.checkpoint + " goes on from there", 0);
  }
  return 128 + app::Interrupt::signal();
}

// A failure, or what was asked for.
void App::Inside::tell(const Saved& saved) const {
  const bool asked = app::Interrupt::take_request();
  const std::string at = " at time " + app::text("%.10g", saved.at);
  if (!saved.error.empty()) say("not saved" + at + ": " + saved.error, kFailed);
  else if (asked) say("saved" + at + " in " + options.checkpoint, 0);
}

void App::Inside::print(const app::Run& run) const {
  if (output.json) std::printf("%s\n", app::one_line(app::summary(run)).c_str());
  else if (!output.quiet) app::print_summary(run, stdout);
  flush_output();
}

int App::run(int argc, char** argv, const std::function<void(Simulation&)>& build,
             const std::function<void(const Result&, Summary&)>& summarise) {
  try {
    if (start_ranks != nullptr) inside_->ranks = start_ranks(&argc, &argv);
    else if (launched_with_others()) throw Error("mpirun started this program, which is not linked with hmalloc::pdes-mpi");
    if (!inside_->parse(argc, argv)) return 0;
  } catch (const Error& mistake) { return inside_->say(mistake.what(), kCannotStart); }
  return inside_->simulate(build, summarise);
}

}  // namespace pdes
