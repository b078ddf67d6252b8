// LPs whose class was described at run time, by pointers to functions (pdes/foreign.h).
#pragma once

#include <array>
#include <cstddef>
#include <exception>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "pdes/foreign.h"
#include "pdes/partition.h"
#include "pdes/vacancies.h"

namespace pdes {

// How events of a type are handled (Context has these as Cancellable and Makes).
enum class TypeKind : std::uint8_t { plain, cancellable, making };

// Takes the type of an event that nobody gets, and its payload.
using OnUndelivered = std::function<void(std::uint32_t, const void*)>;

// What is known of a class.  Its LPs refer to it, so it outlives them.  An LP's object is its state, and behind
// it its streams, its histograms and its vacancies.
struct ForeignClass {
  ForeignClass(const hm_pdes_class& from, const std::vector<TypeKind>& types, LpId lps);
  // Its LPs come and go, and nobody is there at first.
  void let_come_and_go(bool others_are_dropped, unsigned char* at_the_end, const OnUndelivered& told);
  // What Simulation::add_class takes.
  LpClass described(LpId count);
  static const ForeignClass& of(const Handler* handlers) noexcept {
    return *reinterpret_cast<const ForeignClass*>(handlers);
  }
  static const ForeignClass& of(const Lp& lp) noexcept { return of(lp.handlers); }
  std::size_t plain_size() const noexcept;  // of state and streams
  Histogram* first_histogram(void* state) const noexcept;
  Vacancies* first_vacancies(void* state) const noexcept;
  Stream* streams_of(Lp& lp) const noexcept;
  std::span<Histogram> histograms_of(Lp& lp) const noexcept;
  std::span<Vacancies> vacancies_of(Lp& lp) const noexcept;
  void begin_streams(const Partition& partition, Lp& lp) const noexcept;

  static constexpr std::size_t kTypes = 256;
  bool is_cancellable(std::uint32_t type) const noexcept;

  // First, so that an LP's pointer to it is one to the class.  There is one for each kind of type: which handler is meant is
  // found here.
  std::array<Handler, kTypes> engine_handlers{};
  std::array<Handler, kTypes> vacant_handlers{};  // of an id where nobody is
  std::array<hm_pdes_handler, kTypes> handlers{};
  std::array<TypeKind, kTypes> kinds{};
  std::string name;
  std::size_t size;
  std::uint32_t streams, histograms, vacancies;
  hm_pdes_handler start;
  hm_pdes_reporter report;
  std::vector<std::byte> states;  // empty: zeros
  bool shared;
  std::byte* finals;
  bool comes_and_goes = false, drops = false;
  unsigned char* there = nullptr;
  const OnUndelivered* on_undelivered = nullptr;
  std::string unsaved;  // why, if it cannot be in a checkpoint
  LpId first = 0, lp_count = 0;
  std::vector<LpId>* present = nullptr;  // where those who are there then are noted, if other ranks want to know
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
  [[noreturn]] void refuse(const std::string& what) const;

  Partition& partition;
  Lp& engine_lp;
  std::exception_ptr failure;
};

}  // namespace pdes

// A call of a reporter.
struct hm_pdes_report {
  pdes::Report& report;
  pdes::LpId lp;
  std::exception_ptr failure;
};
