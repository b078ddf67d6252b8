#include "coherence.h"

#include <algorithm>
#include <bit>

namespace cores {

namespace {

constexpr CoreSet bit(CoreIndex core) { return CoreSet{1} << core; }

template <class Visit>
void for_each(CoreSet cores, Visit visit) {
  for (; cores != 0; cores &= cores - 1) visit(static_cast<CoreIndex>(std::countr_zero(cores)));
}

}  // namespace

Coherence::Coherence(unsigned cores, Geometry geometry)
    : geometry_(geometry),
      first_far_((cores + 1) / 2),
      near_(bit(first_far_) - 1),
      ways_(cores * geometry.sets * geometry.ways),
      ticks_(cores) {}

Outcome Coherence::read(CoreIndex core, LineNumber line) {
  if (used(core, line) != nullptr) return {};
  return miss(core, line, State::shared);
}

Outcome Coherence::write(CoreIndex core, LineNumber line) {
  Way* way = used(core, line);
  if (way == nullptr) return miss(core, line, State::modified);
  Outcome outcome;
  if (way->state == State::shared) {
    CoreSet others = holders_[line] & ~bit(core);
    outcome = {Effect::upgrade, (others & ~socket_of(core)) != 0};
    invalidate(others, line);
  }
  way->state = State::modified;
  return outcome;
}

Outcome Coherence::miss(CoreIndex core, LineNumber line, State wanted) {
  Way& way = room_for(core, line);
  CoreSet& holders = holders_[line];
  CoreSet others = holders;
  Outcome outcome{Effect::fill, false};
  if (others != 0) {
    bool none_near = (others & socket_of(core)) == 0;
    bool loses_far = wanted == State::modified && (others & ~socket_of(core)) != 0;
    outcome = {Effect::transfer, none_near || loses_far};
  } else if (wanted == State::shared) {
    wanted = State::exclusive;
  }
  holders |= bit(core);
  way = {line, ++ticks_[core], wanted};
  if (wanted == State::modified) invalidate(others, line);
  else share(others, line);
  return outcome;
}

// Which of a core's lines is least recently used makes room, unless a way is free.
Coherence::Way& Coherence::room_for(CoreIndex core, LineNumber line) {
  Way* set = set_of(core, line);
  Way& way = *std::min_element(set, set + geometry_.ways, [](const Way& a, const Way& b) { return a.used < b.used; });
  if (way.state != State::invalid) holders_[way.line] &= ~bit(core);
  return way;
}

Coherence::Way* Coherence::held(CoreIndex core, LineNumber line) {
  Way* set = set_of(core, line);
  Way* end = set + geometry_.ways;
  Way* way = std::find_if(set, end, [line](const Way& each) { return each.line == line && each.state != State::invalid; });
  return way == end ? nullptr : way;
}

// By its own core; what others do does not count as use.
Coherence::Way* Coherence::used(CoreIndex core, LineNumber line) {
  Way* way = held(core, line);
  if (way != nullptr) way->used = ++ticks_[core];
  return way;
}

void Coherence::invalidate(CoreSet holders, LineNumber line) {
  for_each(holders, [&](CoreIndex core) { *held(core, line) = {}; });
  if (holders != 0) holders_[line] &= ~holders;
}

void Coherence::share(CoreSet holders, LineNumber line) {
  for_each(holders, [&](CoreIndex core) { held(core, line)->state = State::shared; });
}

Coherence::Way* Coherence::set_of(CoreIndex core, LineNumber line) {
  return &ways_[(core * geometry_.sets + (line & (geometry_.sets - 1))) * geometry_.ways];
}

}  // namespace cores
