// LPs that come and go.
#include "pdes/vacancies.h"

#include <new>

#include "pdes/partition.h"

namespace pdes {

Lp& Partition::make(Lp& vacant) {
  Lp& lp = occupy(vacant);
  ++counts.made;
  return lp;
}

Lp& Partition::occupy(Lp& vacant) {
  const LpClass& of = world.class_of(vacant.id);
  const std::size_t size = sizeof(Life) + sizeof(Lp) + of.size;
  Event* block = memory.allocate(size);
  if (block == nullptr) no_memory();
  const Event header{vacant.id, 0, block->block};
  Life& life = *::new (block) Life{header, vacant.sequence, false, false, &vacant, vacant.digest};
  try {
    of.construct(life.lp().object(), vacant.id);
  } catch (...) {
    memory.release(&life.block, size);
    throw;
  }
  Lp* lp = ::new (&life.lp()) Lp(vacant);
  lp->handlers = of.handlers;
  world.lps[lp->id] = lp;
  return *lp;
}

Stream Partition::stream(Lp& lp, std::uint32_t stream_number) const noexcept {
  const std::uint64_t differs = world.class_of(lp.id).comes_and_goes() ? Life::of(lp).digest : 0;
  return {world.seed ^ differs, lp.id, stream_number};
}

void Partition::vacate(Lp& lp) {
  if (!world.class_of(lp.id).comes_and_goes())
    throw Misdeed("", name_of(lp), "ends itself: it is there for the whole run, as it was not added by add_vacant");
  Life::of(lp).leaves = true;
}

void Partition::end(Lp& lp) {
  const LpClass& of = world.class_of(lp.id);
  ++counts.ended;
  ended.ends_at(now);
  try {
    of.report(lp.object(), ended);
  } catch (...) {  // nobody asks it again
    leave(of, lp);
    throw;
  }
  leave(of, lp);
}

void Partition::leave(const LpClass& of, Lp& lp) noexcept {
  of.destroy(lp.object());
  Life& life = Life::of(lp);
  Lp& vacant = *life.vacant;
  vacant = lp;
  vacant.handlers = of.vacant_handlers;
  world.lps[vacant.id] = &vacant;
  memory.release(&life.block, sizeof(Life) + sizeof(Lp) + of.size);
}

bool Partition::is_of_another_life(Lp& lp) const noexcept {
  Life& life = Life::of(lp);
  if (lp.sequence - life.born >= std::uint32_t{1} << 31) life.long_lived = true;
  if (life.long_lived) return false;
  const std::uint64_t tie = tie_by_source(pending.popped_tie());
  return source_of(tie) == lp.id && static_cast<std::int32_t>(static_cast<std::uint32_t>(tie) - life.born) < 0;
}

void Partition::to_nobody(const Lp& vacant, const Event& event) {
  if (!is_own(vacant) && !world.class_of(vacant.id).drops)
    throw Misdeed("", name_of(vacant), "is vacant: nobody is there to execute " + world.types[event.type].name);
  ++counts.undelivered;
}

}  // namespace pdes
