// barnes-hut (Hoard, section 5 and Figure 3 d): bodies that attract each other, by the method of Barnes and Hut.  Each
// round builds an octree of the bodies' places, node by node, computes its pull on every body, and frees it.  The space
// is divided into 64 cells, and the next free thread builds the next cell's tree: all threads allocate at once, all
// read all trees, and each frees the nodes that it made.  So all memory is local.  An operation is a node: a malloc
// with its free.
//
//   barnes-hut [--threads 1] [--bodies 32768] [--steps 20]
//
// Nodes have 40 bytes (a body) or 112 bytes (a cell of up to eight).  energy_start and energy_end are the total energy,
// kinetic and potential, in the first round and in the last; checksum is over the bits of all places at the end, and
// does not depend on the number of threads.
//
// How it misleads: computing takes nearly all the time, so allocators differ little, as in the paper; if they do, the
// cause may be where they place the nodes that the computation reads.
#include <array>
#include <barrier>
#include <bit>

#include "common.h"
#include "octree.h"

namespace {

using namespace bench;

constexpr double kTimeStep = 0.01;  // a body crosses the ball in about 2
constexpr unsigned kTrees = 64;

struct Body {
  Vector place;
  Vector velocity;
  double energy = 0;
};

Vector draw_in_unit_ball(Random& random) {
  auto draw = [&] { return random.next() / 2147483648.0 - 1; };
  for (;;) {
    double x = draw();
    double y = draw();
    Vector drawn{x, y, draw()};
    if (drawn.squared() <= 1) return drawn;
  }
}

// A ball of radius 1 and mass 1, with velocities drawn in the same way: the kinetic energy is 3/10, the potential -3/5.
std::vector<Body> draw_bodies(std::uint32_t count) {
  std::vector<Body> bodies(count);
  Random random(1);
  for (Body& body : bodies) {
    body.place = draw_in_unit_ball(random);
    body.velocity = draw_in_unit_ball(random);
  }
  return bodies;
}

class Simulation {
 public:
  Simulation(std::uint32_t bodies, std::uint32_t steps, unsigned threads)
      : steps_(steps), threads_(threads), mass_(1.0 / bodies), bodies_(draw_bodies(bodies)), together_(threads) {}

  // For each of the threads.
  void work(unsigned index) {
    std::vector<unsigned> mine;
    mine.reserve(kTrees);
    const std::size_t share = (bodies_.size() + threads_ - 1) / threads_;
    const std::size_t end = std::min(bodies_.size(), share * (index + 1));
    for (std::uint32_t step = 0; step < steps_; ++step) {
      if (index == 0) sort_into_trees();
      together_.arrive_and_wait();
      for (unsigned tree; (tree = next_tree_.fetch_add(1)) < kTrees; mine.push_back(tree)) build(tree);
      together_.arrive_and_wait();
      for (std::size_t i = share * index; i < end; ++i) advance(bodies_[i], step == 0);
      together_.arrive_and_wait();
      for (unsigned tree : mine) nodes_.fetch_add(trees_[tree].clear());
      mine.clear();
      if (index == 0) note_energy(step == 0);
    }
  }

  double nodes() const { return static_cast<double>(nodes_.load()); }

  std::string fields() const {
    std::uint32_t checksum = 0;
    for (const Body& body : bodies_) {
      for (double each : {body.place.x, body.place.y, body.place.z}) {
        auto bits = std::bit_cast<std::uint64_t>(each);
        checksum = checksum * 31 + static_cast<std::uint32_t>(bits ^ (bits >> 32));
      }
    }
    return field("energy_start", energy_start_) + field("energy_end", energy_end_) + field("checksum", checksum);
  }

 private:
  // Two levels down: 64 cells.
  static unsigned descend_to_tree(Box& box, const Vector& place) {
    unsigned eighth = box.descend(place);
    return 8 * eighth + box.descend(place);
  }

  void sort_into_trees() {
    all_ = {{}, 0};
    for (const Body& body : bodies_) {
      all_.half = std::max({all_.half, std::abs(body.place.x), std::abs(body.place.y), std::abs(body.place.z)});
    }
    for (auto& members : members_) members.clear();
    for (const Body& body : bodies_) {
      Box box = all_;
      members_[descend_to_tree(box, body.place)].push_back(&body);
    }
    next_tree_.store(0);
  }

  void build(unsigned tree) {
    for (const Body* body : members_[tree]) {
      Box box = all_;
      descend_to_tree(box, body->place);
      trees_[tree].insert(body->place, mass_, box);
    }
    trees_[tree].summarise();
  }

  // Leapfrog: velocities move by half a step, places by a whole one, velocities by the other half.
  void advance(Body& body, bool first) const {
    Pull pull;
    for (const Octree& tree : trees_) tree.pull_on(body.place, pull);
    Vector half_kick = pull.acceleration * (kTimeStep / 2);
    if (!first) body.velocity = body.velocity + half_kick;
    double potential = pull.potential + mass_ / kSoftening;  // without its own
    body.energy = mass_ * (body.velocity.squared() + potential) / 2;
    body.velocity = body.velocity + half_kick;
    body.place = body.place + body.velocity * kTimeStep;
  }

  void note_energy(bool first) {
    energy_end_ = 0;
    for (const Body& body : bodies_) energy_end_ += body.energy;
    if (first) energy_start_ = energy_end_;
  }

  const std::uint32_t steps_;
  const unsigned threads_;
  const double mass_;
  std::vector<Body> bodies_;
  Box all_{};
  std::array<std::vector<const Body*>, kTrees> members_;
  std::array<Octree, kTrees> trees_;
  std::barrier<> together_;
  std::atomic<unsigned> next_tree_{0};
  std::atomic<std::size_t> nodes_{0};
  double energy_start_ = 0;
  double energy_end_ = 0;
};

}  // namespace

int main(int count, char** values) {
  Arguments arguments(count, values);
  unsigned threads = arguments.threads();
  std::uint32_t bodies = arguments.count("bodies", 32'768, 2, 100'000'000);
  std::uint32_t steps = arguments.count("steps", 20);
  arguments.finish();

  Simulation simulation(bodies, steps, threads);
  Span span = run_workers(threads, false, [&](unsigned index) { simulation.work(index); });
  report("barnes-hut", threads, simulation.nodes(), span, simulation.fields());
}
