// A logical process as the engine sees it: its record, followed directly by the model's object.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "pdes/checkpoint.h"
#include "pdes/event.h"
#include "pdes/random.h"

namespace pdes {

class Partition;
class Report;
struct Lp;

// Executes an event of one type on LPs of one class.
using Handler = void (*)(Partition&, Lp&, const Event&);

// Written only by the thread that runs the LP.
struct Lp {
  const Handler* handlers;   // by event type
  std::uint64_t digest = 0;  // of the executed events, in order
  Stream stream;
  LpId id;
  std::uint32_t sequence = 0;  // number of events sent
  void* object() noexcept { return this + 1; }
  const void* object() const noexcept { return this + 1; }
};
static_assert(sizeof(Lp) % 16 == 0);

struct EventType {
  std::uint32_t size;  // of the payload, bytes
  std::string name;
};

// One class of LPs as the model added it: LPs first to first + count - 1.
struct LpClass {
  std::string name;
  LpId first, count;
  std::size_t size;  // of the object
  const Handler* handlers;
  std::function<void(void* place, LpId)> construct;
  void (*destroy)(void*) noexcept;
  void (*start)(Partition&, Lp&);
  void (*report)(const void*, Report&);
  Saving saving{};
  // Of LPs that come and go (vacancies.h): the handlers of an id where nobody is, and whether it drops what others send.
  const Handler* vacant_handlers = nullptr;
  bool drops = false;
  bool comes_and_goes() const noexcept { return vacant_handlers != nullptr; }
};

}  // namespace pdes
