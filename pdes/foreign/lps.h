// LPs whose class was described at run time, by pointers to functions (pdes/foreign.h).
#pragma once

#include <exception>
#include <string>
#include <vector>

#include "pdes/foreign.h"
#include "pdes/partition.h"

namespace pdes {

// What is known of a class.  Its LPs refer to it, so it outlives them.
struct ForeignClass {
  explicit ForeignClass(const hm_pdes_class& from, std::size_t event_types, LpId lps);
  // What Simulation::add_class takes.
  LpClass described(LpId count);

  std::string name;
  std::size_t size;
  std::uint32_t streams;
  hm_pdes_handler start;
  std::vector<hm_pdes_handler> handlers;
  hm_pdes_reporter report;
  std::vector<std::byte> states;  // empty: zeros
  bool shared;
  std::byte* finals;
  LpId first;
};

// The object of an LP: this, the state, the streams.
struct alignas(16) ForeignObject {
  const ForeignClass* of;
  LpId id;
  void* state() noexcept { return this + 1; }
  Stream* streams() noexcept;
  static std::size_t size(const ForeignClass& of) noexcept;
};

// A call of a handler, with what the handler must not see behind what it may.
struct ForeignCall : hm_pdes_lp {
  ForeignCall(Partition& partition, Lp& lp) noexcept;
  // Calls it; throws what went wrong.
  void operator()(hm_pdes_handler handler, const void* event);
  // Does something on behalf of the handler, which no exception may pass: it need not have been compiled with such in mind.
  template <class Work>
  void attempt(Work&& work) noexcept {
    if (failure != nullptr) return;
    try {
      work();
    } catch (...) { failure = std::current_exception(); }
  }
  Random random(std::uint32_t stream);  // throws if there is none of that number
  std::string name() const;             // of the LP

  Partition& partition;
  Lp& engine_lp;
  ForeignObject& object;
  std::exception_ptr failure;
};

}  // namespace pdes

// A call of a reporter.
struct hm_pdes_report {
  pdes::Report& report;
  std::exception_ptr failure;
};
