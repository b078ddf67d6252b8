// Does not compile without SENDABLE: what the event has is not in its bytes.
#include <pdes/pdes.h>

#include <string>

struct Greeting {
#ifdef SENDABLE
  char text[16];
#else
  std::string text;
#endif
};
struct Silence {};

struct Guest {
  using Context = pdes::Context<Silence, pdes::Cancellable<Greeting>>;
  pdes::Timer timer;
  void start(Context& context) {
    context.send_self(1, Greeting{"hello"});
    context.set(timer, 1, Greeting{"hello"});
  }
  void on(Context&, const Greeting&) {}
  void on(Context& context, const Silence&) { context.send(0, 1, Greeting{"goodbye"}); }
};

void build(pdes::Simulation& simulation) {
  simulation.add<Guest>(1, [](pdes::LpId) { return Guest{}; });
}
