#include "engine/checkpoint.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "engine/failure_text.h"
#include "engine/number_text.h"
#include "engine/team.h"

namespace pdes {
namespace {

// In which of their lines two models differ: the first is a name, the others are "PARAMETER: VALUE".
std::string difference(std::string_view its, std::string_view ours) {
  const auto same = static_cast<std::size_t>(std::ranges::mismatch(its, ours).in1 - its.begin());
  const std::size_t start = its.substr(0, same).rfind('\n') + 1;
  const auto line = [&](std::string_view text) { return std::string(text.substr(start, text.find('\n', start) - start)); };
  const std::string its_line = line(its), our_line = line(ours);
  if (start == 0 && its_line != our_line) return "of '" + its_line + "', not '" + our_line + "'";
  const std::size_t name = its_line.find(": ");
  if (name == std::string::npos || our_line.find(": ") != name || our_line.compare(0, name, its_line, 0, name) != 0)
    return "its parameters are others";
  return "its " + its_line.substr(0, name) + " is " + its_line.substr(name + 2) + ", not " + our_line.substr(name + 2);
}

// What a simulation is: the same in a run and in the checkpoint that it goes on from.
struct Identity {
  std::string model;
  std::vector<std::pair<std::string, std::uint64_t>> types, classes;  // names; sizes of payloads, numbers of LPs
  std::vector<std::uint64_t> object_sizes;
  std::uint64_t seed = 0;
  Time end = 0, lookahead = 0;
  Generator generator{};
  Ties ties{};

  Identity() = default;
  Identity(const World& world, std::string name)
      : model(std::move(name)),
        seed(world.seed),
        end(world.end),
        lookahead(world.lookahead),
        generator(world.generator),
        ties(world.ties) {
    for (const EventType& type : world.types) types.emplace_back(type.name, type.size);
    for (const LpClass& of : world.classes) {
      classes.emplace_back(of.name + (of.comes_and_goes() ? ", vacant" : ""), of.count);
      object_sizes.push_back(of.size);
    }
  }
  template <class A>
  void serialize(A& archive) {
    archive(model, types, classes, object_sizes, seed, end, lookahead, generator, ties);
  }

  // Throws Error with the first difference.
  void require(const Identity& mine, const std::string& path) const {
    const auto same = [&](const auto& its, const auto& ours, const std::string& what) {
      if (its != ours) throw Error(path + " is of another simulation: " + what);
    };
    const auto numbers = [](Time its, Time ours) { return text_of(its) + ", not " + text_of(ours); };
    same(model, mine.model, difference(model, mine.model));
    same(types, mine.types, "its event types are others");
    same(classes, mine.classes, "its LPs are others");
    same(object_sizes, mine.object_sizes, "its LPs have other sizes; it is of another build of the program");
    same(seed, mine.seed, "its seed is " + std::to_string(seed) + ", not " + std::to_string(mine.seed));
    same(end, mine.end, "its end is " + numbers(end, mine.end));
    same(lookahead, mine.lookahead, "its lookahead is " + numbers(lookahead, mine.lookahead));
    same(generator, mine.generator, "its random numbers come from another generator");
    same(ties, mine.ties, "it orders ties in another way");
  }
};

void add(Before& sum, const Counts& counts, const std::vector<std::uint64_t>& executed_by_type) {
  sum.counts.sent += counts.sent;
  sum.counts.crossed += counts.crossed;
  sum.counts.dropped += counts.dropped;
  sum.counts.cancelled += counts.cancelled;
  sum.counts.made += counts.made;
  sum.counts.ended += counts.ended;
  sum.counts.undelivered += counts.undelivered;
  for (std::size_t type = 0; type < executed_by_type.size(); ++type) sum.executed_by_type[type] += executed_by_type[type];
}

}  // namespace

Checkpoint::Checkpoint(std::vector<std::byte> bytes, const std::string& from, const World& world, const std::string& model)
    : path(from), file(std::move(bytes)), parts(blocks_of(file, path)) {
  Identity its;
  std::uint64_t part_count = 0;
  try {
    Archive head(parts.front());
    head(its, before, part_count);
    elsewhere = head.left();
    parts.erase(parts.begin());
    Report::read(before.ended);
  } catch (const Error& error) { throw Error(path + " is damaged: " + error.what()); }
  if (parts.size() != part_count || before.executed_by_type.size() != its.types.size())
    throw Error(path + " is damaged: it has " + std::to_string(parts.size()) + " parts of " + std::to_string(part_count));
  if (!(before.end >= 0)) throw Error(path + " is damaged: it ends before it begins");
  its.require(Identity(world, model), path);
}

Saver::Saver(Team& team, std::atomic<bool>& requested) noexcept
    : team_(team), requested_(requested), parts_(team.threads()), next_(Clock::now()) {
  next_ += std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(team.options.checkpoint_every));
}

bool Saver::is_due() const noexcept {
  if (requested_.load(std::memory_order_relaxed)) return true;
  return team_.options.checkpoint_every > 0 && team_.world.first_partition == 0 && Clock::now() >= next_;
}

void Saver::take(unsigned thread, bool incomplete) noexcept {
  Part& part = parts_[thread];
  part = {};
  const Partition& own = *team_.partitions[thread];
  try {
    if (incomplete) throw Error("its thread has failed");
    if (save_elsewhere && thread == 0 && team_.world.first_partition == 0) elsewhere_ = save_elsewhere();
    Archive archive;
    own.save(archive);
    part.bytes = archive.take();
    part.counts = own.counts;
    part.ended = own.ended.write();
    part.executed_by_type = own.executed_by_type;
  } catch (...) { part.error = failure_text(); }
}

std::vector<Saver::Part> Saver::of_all_ranks() {
  std::vector<Part> mine = std::exchange(parts_, std::vector<Part>(team_.threads()));
  if (team_.ranks == nullptr) return mine;
  // A rank without memory still has to answer.
  std::vector<std::byte> message;
  try {
    message = to_bytes(mine);
  } catch (...) {
    mine.assign(1, {failure_text(), {}, {}, {}, {}});
    message = to_bytes(mine);
  }
  mine.clear();
  std::vector<Part> parts;
  for (const auto& bytes : team_.ranks->gather(message)) {
    std::vector<Part> theirs;
    from_bytes(bytes, theirs);
    for (Part& part : theirs) parts.push_back(std::move(part));
  }
  return parts;
}

void Saver::write(Time at) {
  requested_.store(false, std::memory_order_relaxed);
  Saved saved{at, {}};
  std::vector<Part> parts = of_all_ranks();
  if (team_.world.first_partition != 0) return;
  try {
    write_file(at, std::move(parts));
    ++written_;
  } catch (...) { saved.error = failure_text(); }
  next_ = Clock::now() +
          std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(team_.options.checkpoint_every));
  if (on_save) on_save(saved);
}

void Saver::write_file(Time at, std::vector<Part> parts) {
  Before before = team_.before;
  before.at = at;
  before.wall_s = team_.seconds();
  before.end = team_.end();  // perhaps lower already than where the parts were taken: they ask for the same again
  before.executed_by_type.resize(team_.world.types.size());
  Report ended = Report::read(before.ended);
  std::vector<ByteBlock> blocks(1);
  for (Part& part : parts) {
    if (!part.error.empty()) throw Error("an LP cannot be saved: " + part.error);
    add(before, part.counts, part.executed_by_type);
    ended.merge(Report::read(part.ended));
    blocks.push_back(std::move(part.bytes));
  }
  before.ended = ended.write();
  Identity identity(team_.world, team_.options.model);
  std::uint64_t part_count = parts.size();
  Archive head;
  head(identity, before, part_count);
  head.raw(elsewhere_.data(), elsewhere_.size());
  blocks.front() = head.take();
  write_checkpoint_file(team_.options.checkpoint, blocks);
}

}  // namespace pdes
