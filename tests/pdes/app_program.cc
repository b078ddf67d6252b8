// A model with every kind of option and statistic, whose runs can be made to go wrong.
#include "pdes/app.h"

#include <stdexcept>

namespace {

enum class Kind : std::uint8_t { plain, throwing, wordy, wild, greedy, hasty, hot };

struct Parameters {
  double delay = 1, least = 1, odd = 0;
  std::uint32_t lps = 4;
  std::uint64_t large = 5'000'000'000;
  std::string word = "some", file;
  bool flag = false;
  Kind kind = Kind::plain;
};

struct Token {
  std::uint64_t steps;
};

class Place {
 public:
  using Context = pdes::Context<Token>;
  explicit Place(const Parameters& p) : p_(p) {}
  void start(Context& context) { context.send_self(0, Token{0}); }
  void on(Context& context, const Token& token) {
    ++visits_;
    times_.add(context.now());
    if (p_.kind == Kind::throwing && context.now() > 5) throw std::runtime_error("a model's own trouble");
    if (p_.kind == Kind::wordy && context.now() > 5) throw std::runtime_error("a model's own\ntrouble\n");
    if (p_.kind == Kind::wild && context.now() > 5) throw 42;
    if (p_.kind == Kind::hot && context.id() == 3 && visits_ % 10 != 0) return context.send_self(0.05, token);
    const double delay = p_.kind == Kind::hasty && token.steps == 0 ? 0 : p_.delay;
    context.send((context.id() + 1) % context.lp_count(), delay, Token{token.steps + 1});
    if (p_.kind == Kind::greedy) context.send_self(1e-3, Token{0});
  }
  void serialize(auto& archive) { archive(visits_, times_); }
  void report(pdes::Report& report) const {
    report.count("visits", visits_);
    report.sum("halves", 0.5 * static_cast<double>(visits_));
    report.tally("times", times_);
    report.tally("nothing", pdes::Tally());
  }

 private:
  const Parameters& p_;
  std::int64_t visits_ = 0;
  pdes::Tally times_;
};

}  // namespace

int main(int argc, char** argv) {
  Parameters p;
  pdes::App app("toy", "tokens that go round");
  app.defaults({.end = 10})
      .lookahead([&] { return p.least; })
      .option("delay", p.delay, "of a token", 0)
      .option("least", p.least, "delay that it has at least")
      .option("odd", p.odd, "refused by the model if it is 2", -1, 3)
      .option("lps", p.lps, "places", 1, 1000)
      .option("large", p.large, "a number")
      .option("word", p.word, "a text")
      .file("file", p.file, "to read")
      .option("flag", p.flag, "yes or no")
      .choice("kind", p.kind,
              {{"plain", Kind::plain},
               {"throwing", Kind::throwing},
               {"wordy", Kind::wordy},
               {"wild", Kind::wild},
               {"greedy", Kind::greedy},
               {"hasty", Kind::hasty},
               {"hot", Kind::hot}},
              "of run");
  return app.run(
      argc, argv,
      [&](pdes::Simulation& simulation) {
        if (p.odd == 2) throw pdes::Error("--odd: 2 is even");
        simulation.add<Place>(p.lps, [&](pdes::LpId) { return Place(p); });
        simulation.set_neighbours([&](pdes::LpId id, const auto& to) { to((id + 1) % p.lps); });
      },
      [](const pdes::Result& result, pdes::Summary& summary) {
        summary.add("visits per time", static_cast<double>(result.statistics.count_of("visits")) / result.reached);
      });
}
