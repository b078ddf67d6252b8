// What the programs of all models share: command line, progress line, summary, time series, Ctrl-C.  A whole program:
//
//   int main(int argc, char** argv) {
//     std::uint32_t lps = 8192;
//     pdes::App app("phold", "the standard benchmark of parallel simulation");
//     app.option("lps", lps, "logical processes", 1);
//     return app.run(argc, argv, [&](pdes::Simulation& s) { s.add<Phold>(lps, [](pdes::LpId) { return Phold(); }); });
//   }
//
// An Error thrown by `build` is a mistake in the user's request, so there a model checks what bounds cannot express.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "pdes/pdes.h"

namespace pdes {

// Numbers that a model derives from its statistics; they are shown after these.
class Summary {
 public:
  Summary& add(std::string name, double value) {
    numbers_.emplace_back(std::move(name), value);
    return *this;
  }
  const std::vector<std::pair<std::string, double>>& numbers() const noexcept { return numbers_; }

 private:
  std::vector<std::pair<std::string, double>> numbers_;
};

class App {
 public:
  App(std::string name, std::string description);
  ~App();
  App(const App&) = delete;
  App& operator=(const App&) = delete;

  // How the model is run unless the user says otherwise; at least its end and lookahead.
  App& defaults(const Options& options);
  // The lookahead, unless the user gives one: what the model guarantees with its options as they are then.
  App& lookahead(std::function<Time()> least);

  // Adds an option --name of the model.  The present value is the default; value must live until run() has returned.
  App& option(const std::string& name, double& value, const std::string& help,
              double least = -std::numeric_limits<double>::max(), double most = std::numeric_limits<double>::max());
  App& option(const std::string& name, std::uint32_t& value, const std::string& help, std::uint32_t least = 0,
              std::uint32_t most = std::numeric_limits<std::uint32_t>::max());
  App& option(const std::string& name, std::uint64_t& value, const std::string& help, std::uint64_t least = 0,
              std::uint64_t most = std::numeric_limits<std::uint64_t>::max());
  App& option(const std::string& name, std::string& value, const std::string& help);
  App& option(const std::string& name, bool& flag, const std::string& help);
  // A file that is there and can be read; empty is none, as the default.
  App& file(const std::string& name, std::string& path, const std::string& help);

  // One of several named values.
  template <class Value>
  App& choice(const std::string& name, Value& value, std::vector<std::pair<std::string, Value>> named,
              const std::string& help) {
    std::vector<std::string> names;
    std::size_t now = 0;
    for (const auto& [text, meant] : named) {
      if (meant == value) now = names.size();
      names.push_back(text);
    }
    return choose(name, std::move(names), now, help,
                  [&value, named = std::move(named)](std::size_t chosen) { value = named[chosen].second; });
  }

  // Parses, builds, runs, reports; over MPI if the program is linked with it and mpirun started it.  Returns main's
  // exit code: 0; 1 if the run failed; 2 if it could not start as requested; 130 after Ctrl-C.
  int run(int argc, char** argv, const std::function<void(Simulation&)>& build,
          const std::function<void(const Result&, Summary&)>& summarise = {});

 private:
  App& choose(const std::string& name, std::vector<std::string> names, std::size_t now, const std::string& help,
              std::function<void(std::size_t)> set);
  struct Inside;
  std::unique_ptr<Inside> inside_;
};

}  // namespace pdes
