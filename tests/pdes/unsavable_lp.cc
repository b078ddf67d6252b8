// Does not compile without SAVABLE: nobody said how this LP is saved.
#include <pdes/pdes.h>

#include <vector>

struct Event {};

struct Node {
  using Context = pdes::Context<Event>;
  std::vector<int> seen;
  void start(Context&) {}
  void on(Context&, const Event&) { seen.push_back(1); }
#ifdef SAVABLE
  template <class A>
  void serialize(A& archive) {
    archive(seen);
  }
#endif
};

void build(pdes::Simulation& simulation) {
  simulation.add<Node>(1, [](pdes::LpId) { return Node{}; });
}
