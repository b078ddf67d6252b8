// A run that is saved, ended and resumed comes to what the run comes to that was never stopped, wherever and however that
// is done; and whatever may be wrong with the file is one line.
#include "pdes/checkpoint.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "in_process_ranks.h"
#include "simulations.h"

namespace {
std::string kept;  // by the disk, in this order: files, folders, names
}

extern "C" int fsync(int fd) {
  struct stat found{};
  fstat(fd, &found);
  kept += S_ISDIR(found.st_mode) ? " folder" : " file";
  return static_cast<int>(syscall(SYS_fsync, fd));
}
extern "C" int rename(const char* from, const char* to) noexcept {
  kept += " name";
  return renameat(AT_FDCWD, from, AT_FDCWD, to);
}

namespace pdes {
namespace {

using test::error_of;
using test::expect_same;
using Contents = std::vector<char>;

// A file of this test, not there at first.
class Place {
 public:
  explicit Place(const std::string& name)
      : path(testing::TempDir() + "checkpoint_test." + std::to_string(getpid()) + name) {}
  ~Place() {
    for (const char* end : {"", ".new"}) std::filesystem::remove(path + end);
  }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

  Contents read() const {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void write(const Contents& contents) const {
    std::ofstream(path, std::ios::binary).write(contents.data(), static_cast<std::streamsize>(contents.size()));
  }
  const std::string path;
};

// ---- A model with payloads of every kind, LPs with and without a serialize, ties, priorities, delays of 0. ----

struct Small {
  std::uint32_t hops;
};
struct Odd {
  char letters[3];
};
struct Large {
  std::uint64_t numbers[20];
};
struct Pulse {};
using TestContext = Context<Small, Odd, Large, Pulse>;

// Stops the run after so many events, on whatever thread that happens.
struct Brake {
  std::atomic<std::int64_t> left{0};
  std::atomic<Simulation*> simulation{nullptr};
  void event() {
    if (left.fetch_sub(1) == 1) simulation.load()->stop();
  }
};
Brake g_brake;

LpId other(TestContext& context) {
  auto to = static_cast<LpId>(context.random().integer(context.lp_count()));
  return to == context.id() ? (to + 1) % context.lp_count() : to;
}

// Does what it does with what it remembers, in all that an archive understands.
class Keeper {
 public:
  using Context = TestContext;
  explicit Keeper(LpId id) : name_("keeper " + std::to_string(id)) {}

  void start(Context& context) {
    further_ = context.stream(1);
    context.send_self(static_cast<Time>(context.random().integer(3)), Pulse{});
    context.send(other(context), 0.05, Small{1});
  }
  void on(Context& context, const Pulse&) {
    g_brake.event();
    context.send_self(1, Pulse{}, static_cast<Priority>(recent_.size() % 3));
    context.send(other(context), 1, Odd{{'a', static_cast<char>('a' + seen_.size() % 20), 'z'}});
  }
  void on(Context& context, const Small& small) {
    g_brake.event();
    recent_.push_back(small.hops);
    if (recent_.size() > 5) recent_.pop_front();
    last_ = last_ && *last_ > 3 ? std::nullopt : std::optional<double>(context.random(further_).exponential(2));
    flags_.push_back(small.hops % 2 == 0);
    if (flags_.size() > 20) flags_.clear();
    std::uint64_t sum = last_ ? 1 : 2;
    for (std::uint32_t hops : recent_) sum = sum * 31 + hops;
    if (small.hops % 3 == 0) context.send_self(0, Large{{sum, flags_.size()}});
    else if (small.hops < 30) context.send(other(context), 0.1 + context.random().exponential(0.5), Small{small.hops + 1});
  }
  void on(Context& context, const Odd& odd) {
    g_brake.event();
    ++seen_[std::string(odd.letters, 3) + name_];
    counts_[seen_.size() % 3].second += 1;
    context.send_self(0.1, Large{{counts_[0].second, seen_.begin()->second}});
  }
  void on(Context& context, const Large& large) {
    g_brake.event();
    context.send(other(context), 0.1, Small{static_cast<std::uint32_t>(large.numbers[0] % 30 + large.numbers[1] % 2)});
  }
  void report(Report& report) const {
    report.count("seen", static_cast<std::int64_t>(seen_.size() + recent_.size()));
    for (const auto& [what, count] : seen_) report.count(what.substr(0, 3), count);
  }
  template <class A>
  void serialize(A& archive) {
    archive(name_, recent_, seen_, last_, flags_, counts_, further_);
  }

 private:
  std::string name_;
  std::deque<std::uint32_t> recent_;
  std::map<std::string, std::uint32_t> seen_;
  std::optional<double> last_;
  std::vector<bool> flags_;
  std::array<std::pair<std::string, std::uint64_t>, 3> counts_;
  Stream further_;
};

// Saved as bytes.
struct Plain {
  using Context = TestContext;
  std::uint64_t state = 0;
  Tally waited{};
  void start(Context& context) { context.send_self(0.5, Pulse{}); }
  void on(Context& context, const Pulse&) {
    g_brake.event();
    context.send_self(0.25 + static_cast<Time>(state % 4), Pulse{});
    context.send(other(context), 1, Small{static_cast<std::uint32_t>(state % 7)}, static_cast<Priority>(state % 5));
  }
  void on(Context& context, const Small& small) {
    g_brake.event();
    state = state * 31 + small.hops;
    waited.add(context.random().exponential(0.1));
  }
  void on(Context&, const Odd&) { ++state; }
  void on(Context&, const Large&) { state += 2; }
  void report(Report& report) const { report.tally("waited", waited); }
};

constexpr LpId kKeepers = 40, kPlain = 25;

void add_lps(Simulation& simulation) {
  g_brake.left = 0;  // what is left of another run must not stop this one
  simulation.add<Keeper>(kKeepers, [](LpId id) { return Keeper(id); });
  simulation.add<Plain>(kPlain, [](LpId) { return Plain{}; });
}

Options basic() { return {.end = 30, .lookahead = 0.1, .model = "test"}; }

Result run(const Options& how, std::int64_t stop_after = 0, Ranks* ranks = nullptr) {
  Simulation simulation(how);
  add_lps(simulation);
  g_brake.simulation = &simulation;
  g_brake.left = stop_after;
  return simulation.run(ranks);
}

const Options kWays[] = {
    {.threads = 1},
    {.threads = 2},
    {.threads = 3, .queue = Queue::heap},
    {.threads = 1, .queue = Queue::heap},
    {.threads = 3, .sync = Sync::neighbours, .partitioning = Partitioning::random},
    {.threads = 2, .queue = Queue::heap, .sync = Sync::neighbours, .partitioning = Partitioning::round_robin},
    {.threads = 3, .allocator = Allocator::free_list, .blocks = Blocks::lines, .partitioning = Partitioning::random},
};

Options in_way(std::size_t number, const std::string& checkpoint, const std::string& resume) {
  Options how = kWays[number % std::size(kWays)];
  const Options same = basic();
  how.end = same.end;
  how.lookahead = same.lookahead;
  how.model = same.model;
  how.max_simultaneous = 500;  // so a single thread looks for requests as often as that, too
  how.checkpoint = checkpoint;
  how.resume = resume;
  return how;
}

TEST(Checkpoint, ARunThatIsStoppedAnywhereGoesOnInAnyWay) {
  const Result whole = run(basic());
  ASSERT_GT(whole.total.events, 5000u);
  for (std::size_t first = 0; first < std::size(kWays); ++first) {
    for (const std::int64_t after : {1, 700, 4000}) {
      SCOPED_TRACE(testing::Message() << "way " << first << ", stopped after " << after);
      const Place file(".any");
      const Result part = run(in_way(first, file.path, ""), after);
      ASSERT_TRUE(part.stopped);
      ASSERT_LT(part.total.events, whole.total.events);
      EXPECT_EQ(part.checkpoints, 1u);
      for (std::size_t next = first + 1; next < first + 3; ++next) {
        const Result rest = run(in_way(next, "", file.path));
        expect_same(rest, whole);
        EXPECT_EQ(rest.events_before, part.total.events);
      }
    }
  }
}

TEST(Checkpoint, AResumedRunIsStoppedAndResumedAgain) {
  const Result whole = run(basic());
  const Place file(".again");
  Result last = run(in_way(0, file.path, ""), 100);
  std::size_t runs = 1;
  for (; last.stopped && runs < 1000; ++runs) last = run(in_way(runs, file.path, file.path), 300);
  EXPECT_GT(runs, 5u);
  expect_same(last, whole);
}

TEST(Checkpoint, IsTakenWhileTheRunGoesOn) {
  const Result whole = run(basic());
  for (std::size_t way = 0; way < std::size(kWays); ++way) {
    SCOPED_TRACE(way);
    const Place file(".every");
    Options how = in_way(way, file.path, "");
    how.checkpoint_every = 1e-9;
    const Result saved = run(how);
    expect_same(saved, whole);
    EXPECT_GT(saved.checkpoints, 0u);
    expect_same(run(in_way(way + 1, "", file.path)), whole);
  }
}

TEST(Checkpoint, IsTakenOnRequest) {
  const Place file(".request");
  Simulation simulation(in_way(1, file.path, ""));
  add_lps(simulation);
  std::vector<Saved> saves;
  simulation.on_save([&](const Saved& saved) { saves.push_back(saved); });
  simulation.save();
  const Result result = simulation.run();
  ASSERT_EQ(saves.size(), 1u);
  EXPECT_EQ(saves[0].error, "");
  EXPECT_FALSE(result.stopped);
  expect_same(run(in_way(0, "", file.path)), result);
}

TEST(Checkpoint, RealTimeGoesOn) {
  const Place file(".time");
  Options how = in_way(0, file.path, "");
  how.progress_interval = 0;
  Simulation simulation(how);
  add_lps(simulation);
  simulation.on_progress([&](const Progress&) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    simulation.stop();
  });
  simulation.run();
  EXPECT_GE(run(in_way(0, "", file.path)).wall_s, 0.1);
}

// ---- Ranks. -----------------------------------------------------------------------------------------------------

std::vector<Result> run_ranks(unsigned ranks, Options how, std::int64_t stop_after = 0) {
  std::vector<Result> results(ranks);
  std::vector<std::unique_ptr<Simulation>> simulations;
  for (unsigned rank = 0; rank < ranks; ++rank) {
    simulations.push_back(std::make_unique<Simulation>(how));
    add_lps(*simulations.back());
  }
  g_brake.simulation = simulations.back().get();
  g_brake.left = stop_after;
  test::on_ranks(ranks, [&](std::size_t rank, Ranks& mine) { results[rank] = simulations[rank]->run(&mine); });
  return results;
}

TEST(CheckpointOfRanks, GoesOnOnAnotherNumber) {
  const Result whole = run(basic());
  for (auto [ranks, threads] : {std::pair{2u, 1u}, {3u, 2u}}) {
    SCOPED_TRACE(ranks);
    const Place file(".ranks");
    Options how = basic();
    how.threads = threads;
    how.checkpoint = file.path;
    const Result part = run_ranks(ranks, how, 1500)[0];
    ASSERT_TRUE(part.stopped);
    ASSERT_LT(part.total.events, whole.total.events);
    expect_same(run(in_way(4, "", file.path)), whole);
    how = basic();
    how.resume = file.path;
    for (unsigned other_ranks : {2u, 4u}) expect_same(run_ranks(other_ranks, how)[0], whole);
  }
}

// ---- Files that are not what they should be. --------------------------------------------------------------------

struct Tick {};
struct Clockwork {
  using Context = pdes::Context<Tick>;
  std::uint64_t ticks = 0;
  void start(Context& context) { context.send_self(1, Tick{}); }
  void on(Context& context, const Tick&) {
    ++ticks;
    context.send((context.id() + 1) % context.lp_count(), 1, Tick{});
  }
};

struct Clocks {
  Options how{.end = 10, .lookahead = 1, .model = "clock"};
  LpId lps = 2;
  void run() const {
    test::run(how, lps, [](LpId) { return Clockwork{}; });
  }
  std::string error() const {
    return error_of([&] { run(); });
  }
};

// The file of a small run, saved at its beginning.
Contents small_file(const Place& place) {
  Simulation simulation({.end = 10, .lookahead = 1, .model = "clock", .checkpoint = place.path});
  simulation.add<Clockwork>(2, [](LpId) { return Clockwork{}; });
  simulation.save();
  simulation.run();
  return place.read();
}

Clocks resumed(const Place& place) {
  Clocks run;
  run.how.resume = place.path;
  return run;
}

TEST(CheckpointFile, EveryByteThatIsAnotherIsNoticed) {
  const Place file(".bytes");
  const Contents good = small_file(file);
  ASSERT_EQ(resumed(file).error(), "no error");
  ASSERT_GT(good.size(), 100u);
  for (std::size_t at = 0; at < good.size(); ++at) {
    Contents bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 1 << at % 8);
    file.write(bad);
    const std::string error = resumed(file).error();
    ASSERT_TRUE(error.starts_with(file.path)) << at << ": " << error;
    ASSERT_EQ(error.find('\n'), std::string::npos);
  }
}

TEST(CheckpointFile, EveryEarlyEndIsNoticedAndEveryLateOne) {
  const Place file(".ends");
  const Contents good = small_file(file);
  for (std::size_t size = 0; size < good.size(); ++size) {
    file.write(Contents(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size)));
    ASSERT_TRUE(resumed(file).error().starts_with(file.path)) << size;
  }
  for (std::size_t more : {1u, 16u, 100u}) {
    Contents bad = good;
    bad.insert(bad.end(), more, '\0');
    file.write(bad);
    ASSERT_TRUE(resumed(file).error().starts_with(file.path)) << more;
  }
}

TEST(CheckpointFile, PartsThatHaveChangedPlacesAreNoticed) {
  const Place file(".parts");
  const Contents good = small_file(file);
  const std::ptrdiff_t head = 16;  // of the file, and of each part
  std::vector<Contents> parts;
  for (auto at = good.begin() + head; at != good.end(); at += std::ssize(parts.back())) {
    std::uint64_t size = 0;
    std::memcpy(&size, &*at, sizeof size);
    parts.emplace_back(at, at + head + static_cast<std::ptrdiff_t>(size));
  }
  ASSERT_GT(parts.size(), 1u);
  std::swap(parts.front(), parts.back());
  Contents bad(good.begin(), good.begin() + head);
  for (const Contents& part : parts) bad.insert(bad.end(), part.begin(), part.end());
  file.write(bad);
  EXPECT_EQ(resumed(file).error(), file.path + " is damaged: a checksum is wrong");
}

// Otherwise the file of that name may be empty after a loss of power.
TEST(CheckpointFile, IsOnTheDiskBeforeItReplacesTheOldOne) {
  const Place file(".power");
  kept.clear();
  small_file(file);
  EXPECT_EQ(kept, " file name folder");
}

TEST(CheckpointFile, OfAnotherSimulationIsRefused) {
  const Place file(".other");
  small_file(file);
  const auto refused = [&](const auto& change) {
    Clocks run = resumed(file);
    change(run);
    return run.error();
  };
  const std::string of = file.path + " is of another simulation: ";
  EXPECT_EQ(refused([](Clocks& run) { run.how.seed = 2; }), of + "its seed is 1, not 2");
  EXPECT_EQ(refused([](Clocks& run) { run.how.end = 11; }), of + "its end is 10, not 11");
  EXPECT_EQ(refused([](Clocks& run) { run.how.lookahead = 0.5; }), of + "its lookahead is 1, not 0.5");
  EXPECT_EQ(refused([](Clocks& run) { run.how.model = "watch"; }), of + "of 'clock', not 'watch'");
  EXPECT_EQ(refused([](Clocks& run) { run.how.model = "clock\ntick: 1"; }), of + "its parameters are others");
  EXPECT_EQ(refused([](Clocks& run) { run.lps = 3; }), of + "its LPs are others");
  EXPECT_EQ(refused([](Clocks& run) { run.how.ties = Ties::hashed; }), of + "it orders ties in another way");
  EXPECT_EQ(refused([](Clocks& run) { run.how.generator = Generator::philox; }),
            of + "its random numbers come from another generator");
  EXPECT_EQ(error_of([&] { run(in_way(0, "", file.path)); }), of + "of 'clock', not 'test'");
}

TEST(CheckpointFile, ThatCannotBeReadIsOneLine) {
  const Place file(".absent");
  EXPECT_EQ(resumed(file).error(), file.path + " cannot be read: No such file or directory");
  Clocks run;
  run.how.resume = testing::TempDir();
  EXPECT_EQ(run.error(), testing::TempDir() + " cannot be read: it is no regular file");
  file.write(Contents(1000, 'x'));
  EXPECT_EQ(resumed(file).error(), file.path + " is no checkpoint");
}

TEST(CheckpointFile, ThatCannotBeWrittenIsSaidBeforeTheRun) {
  Clocks run;
  run.how.checkpoint = "/no/such/folder/c";
  EXPECT_EQ(run.error(), "/no/such/folder/c.new cannot be written: No such file or directory");
  run.how.checkpoint = testing::TempDir();
  EXPECT_EQ(run.error(), testing::TempDir() + " cannot be written: it is no regular file");
  run.how.checkpoint = "";
  run.how.checkpoint_every = 1;
  EXPECT_EQ(run.error(), "checkpoints need a file");
}

// Runs with a checkpoint at once; returns why it was not written.
std::string error_of_saving(const std::string& path, std::uint64_t& digest) {
  Options how = in_way(1, path, "");
  Simulation simulation(how);
  add_lps(simulation);
  std::string error = "not called";
  simulation.on_save([&](const Saved& saved) { error = saved.error; });
  simulation.save();
  digest = simulation.run().digest;
  return error;
}

TEST(CheckpointFile, ThatDoesNotFitEndsNothingAndLeavesTheOldOne) {
  const std::uint64_t expected = run(basic()).digest;
  std::uint64_t digest = 0;
  EXPECT_EQ(error_of_saving("/dev/full", digest), "/dev/full cannot be written: No space left on device");
  EXPECT_EQ(digest, expected);

  const Place file(".limit");
  ASSERT_EQ(error_of_saving(file.path, digest), "");
  const Contents old = file.read();
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit small{1000, before.rlim_max};
  std::signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &small);
  const std::string error = error_of_saving(file.path, digest);
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_EQ(error, file.path + ".new cannot be written: File too large");
  EXPECT_EQ(digest, expected);
  EXPECT_EQ(file.read(), old);
  EXPECT_FALSE(std::filesystem::exists(file.path + ".new"));
}

// ---- LPs that cannot be saved. ----------------------------------------------------------------------------------

struct Unsavable : Clockwork {
  static constexpr bool kCheckpoints = false;
};
struct Referring {
  using Context = pdes::Context<Tick>;
  const int& number;
  void start(Context&) {}
  void on(Context&, const Tick&) {}
};
static_assert(std::is_trivially_copyable_v<Referring>);

template <class Object, class Make>
std::string error_with(Make make) {
  const Place file(".class");
  Options how = Clocks().how;
  how.checkpoint = file.path;
  return error_of([&] { test::run(how, 2, [&](LpId) { return Object(make()); }); });
}

TEST(CheckpointOfLps, ThatDeclineIsRefused) {
  EXPECT_EQ(error_with<Unsavable>([] { return Unsavable{}; }),
            "LPs of class Unsavable cannot be saved: its kCheckpoints is false");
  static const int number = 1;
  EXPECT_EQ(error_with<Referring>([] { return Referring{number}; }),
            "LPs of class Referring cannot be saved: it has a reference or a constant, and no serialize");
}

struct Moody : Clockwork {
  void serialize(Archive& archive) {
    if (!archive.reads() && sulks) throw std::runtime_error("not now");
    archive(ticks);
    if (archive.reads() && forgets) return;
    archive(ticks);
  }
  static inline bool sulks = false, forgets = false;
};

TEST(CheckpointOfLps, WhoseSerializeThrowsGoesOnWithoutOnAnyRank) {
  const Place file(".moody");
  std::string error = "not called";
  Moody::sulks = true;
  test::on_ranks(2, [&](std::size_t, Ranks& mine) {
    Options how = Clocks().how;
    how.checkpoint = file.path;
    Simulation simulation(how);
    simulation.add<Clockwork>(1, [](LpId) { return Clockwork{}; });
    simulation.add<Moody>(1, [](LpId) { return Moody{}; });  // on the second rank
    simulation.on_save([&](const Saved& saved) { error = saved.error; });
    simulation.save();
    EXPECT_EQ(simulation.run(&mine).reached, 10);
  });
  Moody::sulks = false;
  EXPECT_EQ(error, "an LP cannot be saved: not now");
  EXPECT_FALSE(std::filesystem::exists(file.path));
}

TEST(CheckpointOfLps, WhoReadOtherThanTheyWroteAreNamed) {
  const Place file(".forgets");
  const auto run = [&](const std::string& checkpoint, const std::string& resume) {
    Options how = Clocks().how;
    how.checkpoint = checkpoint;
    how.resume = resume;
    Simulation simulation(how);
    simulation.add<Moody>(2, [](LpId) { return Moody{}; });
    simulation.save();
    simulation.run();
  };
  run(file.path, "");
  EXPECT_EQ(error_of([&] { run("", file.path); }), "no error");
  Moody::forgets = true;
  EXPECT_EQ(error_of([&] { run("", file.path); }), file.path + " cannot be resumed: Moody does not read what it wrote");
  Moody::forgets = false;
}

// ---- Archives. --------------------------------------------------------------------------------------------------

struct Nothing {
  void serialize(Archive&) {}
  bool operator==(const Nothing&) const = default;
};
enum class Colour : std::uint8_t { red, green };
struct Everything {
  int number = 0;
  double real = 0;
  Colour colour{};
  std::string text;
  std::vector<std::string> texts;
  std::vector<bool> bits;
  std::vector<double> reals;
  std::deque<std::pair<int, std::string>> pairs;
  std::map<int, std::vector<int>> map;
  std::set<std::string> set;
  std::array<std::string, 2> array;
  std::optional<std::string> maybe;
  std::vector<Nothing> nothings;
  int plain[3] = {};
  bool operator==(const Everything&) const = default;
  template <class A>
  void serialize(A& archive) {
    archive(number, real, colour, text, texts, bits, reals, pairs, map, set, array, maybe, nothings, plain);
  }
};

TEST(ArchiveTest, ReadsWhatItWrote) {
  Everything empty, full{1,
                         2.5,
                         Colour::green,
                         "text",
                         {"a", ""},
                         {true, false, true},
                         {1, 2},
                         {{1, "one"}, {2, "two"}},
                         {{1, {}}, {2, {3, 4}}},
                         {"x", "y"},
                         {"p", "q"},
                         "perhaps",
                         std::vector<Nothing>(1000),
                         {7, 8, 9}};
  for (Everything* value : {&empty, &full}) {
    const std::vector<std::byte> bytes = to_bytes(*value);
    for (Everything read : {empty, full}) {  // what was there before is gone
      from_bytes(bytes, read);
      EXPECT_EQ(read, *value);
    }
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      Everything read;
      EXPECT_THROW(from_bytes(std::span(bytes).first(size), read), Error) << size;
    }
  }
}

TEST(ArchiveTest, TrustsNoCount) {
  std::uint64_t count = std::uint64_t{1} << 60;
  const std::vector<std::byte> bytes = to_bytes(count, count, count);
  std::vector<std::uint64_t> numbers;
  std::vector<std::string> texts;
  std::vector<Nothing> nothings;
  std::map<int, int> map;
  std::vector<bool> bits;
  EXPECT_THROW(from_bytes(bytes, numbers), Error);
  EXPECT_THROW(from_bytes(bytes, texts), Error);
  EXPECT_THROW(from_bytes(bytes, nothings), Error);
  EXPECT_THROW(from_bytes(bytes, map), Error);
  EXPECT_THROW(from_bytes(bytes, bits), Error);
}

}  // namespace
}  // namespace pdes
