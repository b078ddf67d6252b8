// A relay on a ring: a station that gets a letter reads it, which takes a while, and passes it on to a neighbour.  The
// model has one of each thing that a model may have; replace them by yours.
#include <pdes/app.h>

#include <cstdint>

// Events: plain structs, each of its own size.
struct Letter {
  std::uint64_t stations;  // that have read it
};
struct Read {
  Letter letter;
};

struct Parameters {
  std::uint32_t stations = 1000;
  std::uint32_t letters = 5;  // of each station, at the start
  double reading = 1, way = 2;
};

// A logical process.  It has its own state and the constant parameters; it learns of others only by events.
class Station {
 public:
  using Context = pdes::Context<Letter, Read>;  // all event types of the model
  explicit Station(const Parameters& parameters) : p_(parameters) {}

  void start(Context& context) {
    for (std::uint32_t i = 0; i < p_.letters; ++i) context.send_self(0, Letter{0});
  }

  void on(Context& context, const Letter& letter) {
    context.send_self(context.random().exponential(p_.reading), Read{{letter.stations + 1}});
  }

  void on(Context& context, const Read& read) {
    ++letters_read_;
    const auto step = context.random().chance(0.5) ? 1 : p_.stations - 1;
    // To another LP no delay may be below the lookahead.
    const auto way = context.lookahead() + context.random().exponential(p_.way - context.lookahead());
    stations_.add(static_cast<double>(read.letter.stations));
    context.send((context.id() + step) % p_.stations, way, read.letter);
  }

  // What a checkpoint must keep: all that changes.
  template <class Archive>
  void serialize(Archive& archive) {
    archive(letters_read_, stations_);
  }

  // Called at the end; summed over all LPs.
  void report(pdes::Report& report) const {
    report.count("letters_read", letters_read_);
    report.tally("stations", stations_);
  }

 private:
  const Parameters& p_;
  std::int64_t letters_read_ = 0;
  pdes::Tally stations_;
};

int main(int argc, char** argv) {
  Parameters parameters;
  pdes::Options defaults;
  defaults.end = 1000;
  defaults.lookahead = 1;
  pdes::App app("my-model", "a relay of letters");
  app.defaults(defaults)
      .option("stations", parameters.stations, "stations of the ring", 1)
      .option("letters", parameters.letters, "letters of each station")
      .option("reading", parameters.reading, "mean time to read a letter", 0)
      .option("way", parameters.way, "mean time from station to station, lookahead included", 0);
  return app.run(
      argc, argv,
      [&](pdes::Simulation& simulation) {
        if (parameters.way < simulation.options().lookahead) throw pdes::Error("--way is below the lookahead");
        simulation.add<Station>(parameters.stations, [&](pdes::LpId) { return Station(parameters); });
        // For --sync neighbours: who may send to whom.
        simulation.set_neighbours([n = parameters.stations](pdes::LpId id, const auto& to) {
          to((id + 1) % n);
          to((id + n - 1) % n);
        });
      },
      [&](const pdes::Result& result, pdes::Summary& summary) {
        const auto read = static_cast<double>(result.statistics.count_of("letters_read"));
        summary.add("letters_per_time", read / result.reached);
      });
}
