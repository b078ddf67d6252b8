// The simulator of many cores, as a plugin of QEMU's user emulation:
//
//   qemu-x86_64 -plugin hmalloc-cores.so,cores=N,out=FILE PROGRAM ...
//
// PROGRAM lets one of its threads run at a time and says which and as which core (marks.h).  What that thread reads and
// writes goes through the model of coherence; what any other does, while it hands over or begins, is not looked at, so nothing
// here needs a lock.  The counts are written to FILE when the program says that it is done.
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "coherence.h"
#include "decode.h"
#include "machine.h"
#include "marks.h"
#include "qemu_api.h"
#include "tally.h"

extern "C" __attribute__((visibility("default"))) const int qemu_plugin_version = 1;

namespace {

using namespace cores;

struct Site {
  std::uint64_t address;
  bool locked;
};

struct Simulation {
  explicit Simulation(unsigned cores) : coherence(cores), machine(cores) {}

  static constexpr unsigned kNobody = ~0U;

  Coherence coherence;
  Machine machine;
  Tally tally;
  std::string out;
  unsigned running = kNobody;  // the thread whose turn it is
  CoreIndex core = 0;          // as which it runs
  bool in_call = false;
};

std::unique_ptr<Simulation> simulation;
// Those that translated code points to: for ever.
std::deque<Site> sites;

// ---- While code runs. -----------------------------------------------------------------------------------------------

void on_instructions(unsigned vcpu, void* number) {
  if (vcpu != simulation->running) return;
  auto instructions = reinterpret_cast<std::uintptr_t>(number);
  simulation->machine.execute(instructions);
  simulation->tally.execute(instructions, simulation->in_call);
}

void on_locked(unsigned vcpu, void*) {
  if (vcpu == simulation->running) simulation->tally.lock(simulation->in_call);
}

void on_enter(unsigned vcpu, void*) {
  if (vcpu == simulation->running) simulation->in_call = true;
}

void on_leave(unsigned vcpu, void*) {
  if (vcpu == simulation->running) simulation->in_call = false;
}

void on_access(unsigned vcpu, qemu_plugin_meminfo_t info, std::uint64_t address, void* data) {
  if (vcpu != simulation->running) return;
  const Site& site = *static_cast<const Site*>(data);
  // A locked instruction gets the line for writing, also where QEMU makes a load and a store of it.
  bool writes = qemu_plugin_mem_is_store(info) || site.locked;
  std::uint64_t last = address + (std::uint64_t{1} << qemu_plugin_mem_size_shift(info)) - 1;
  for (LineNumber line = address / kLineBytes; line <= last / kLineBytes; ++line) {
    if (!simulation->in_call) simulation->tally.touch(line);
    Coherence& coherence = simulation->coherence;
    Outcome outcome = writes ? coherence.write(simulation->core, line) : coherence.read(simulation->core, line);
    simulation->tally.access(outcome, site.address, line, site.locked, simulation->in_call);
  }
}

// ---- When code is translated. ---------------------------------------------------------------------------------------

Mark mark_of(const qemu_plugin_insn* instruction) {
  return mark_in(qemu_plugin_insn_data(instruction), qemu_plugin_insn_size(instruction));
}

// How many instructions run from this one to the next mark.
std::uintptr_t run_length(const qemu_plugin_tb* block, std::size_t from) {
  std::size_t end = from;
  while (end < qemu_plugin_tb_n_insns(block) && mark_of(qemu_plugin_tb_get_insn(block, end)) == Mark::none) ++end;
  return end - from;
}

void on_translation(qemu_plugin_id_t, qemu_plugin_tb* block) {
  bool begins_run = true;
  for (std::size_t i = 0; i < qemu_plugin_tb_n_insns(block); ++i) {
    qemu_plugin_insn* instruction = qemu_plugin_tb_get_insn(block, i);
    auto each_time = [instruction](qemu_plugin_vcpu_udata_cb callback, std::uintptr_t data) {
      qemu_plugin_register_vcpu_insn_exec_cb(instruction, callback, QEMU_PLUGIN_CB_NO_REGS, reinterpret_cast<void*>(data));
    };
    Mark mark = mark_of(instruction);
    if (mark != Mark::none) {
      each_time(mark == Mark::enter ? on_enter : on_leave, 0);
      begins_run = true;
      continue;
    }
    if (begins_run) each_time(on_instructions, run_length(block, i));
    begins_run = false;
    bool locked = is_locked(qemu_plugin_insn_data(instruction), qemu_plugin_insn_size(instruction));
    if (locked) each_time(on_locked, 0);
    sites.push_back({qemu_plugin_insn_vaddr(instruction), locked});
    qemu_plugin_register_vcpu_mem_cb(instruction, on_access, QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_MEM_RW, &sites.back());
  }
}

// ---- System calls. --------------------------------------------------------------------------------------------------

[[noreturn]] void give_up(const std::string& reason) {
  std::fprintf(stderr, "hmalloc-cores: %s\n", reason.c_str());
  std::_Exit(2);
}

void write_counts() {
  std::FILE* out = std::fopen(simulation->out.c_str(), "w");
  if (out == nullptr) give_up(simulation->out + ": " + std::strerror(errno));
  simulation->tally.write(out);
  if (std::fclose(out) != 0) give_up(simulation->out + ": " + std::strerror(errno));
}

void heard(unsigned vcpu, Say what, std::uint64_t core) {
  if (what == Say::begin_turn) {
    simulation->running = vcpu;
    simulation->core = static_cast<CoreIndex>(core);
    simulation->in_call = false;
  }
  if (what == Say::end_turn) simulation->running = Simulation::kNobody;
  if (what == Say::begin_counting) simulation->tally.begin();
  if (what == Say::end_counting) write_counts();
}

void on_syscall(qemu_plugin_id_t, unsigned vcpu, std::int64_t number, std::uint64_t first, std::uint64_t second,
                std::uint64_t third, std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t) {
  if (number == kSystemCall) heard(vcpu, static_cast<Say>(first), second);
  else simulation->machine.asks(vcpu, {first, second, third});
}

void on_syscall_return(qemu_plugin_id_t, unsigned vcpu, std::int64_t number, std::int64_t result) {
  simulation->machine.answers(vcpu, number, result);
}

unsigned cores_of(std::string_view text) {
  int cores = std::atoi(std::string(text).c_str());
  if (cores < 1 || cores > static_cast<int>(kMostCores)) give_up("cores=N is from 1 to " + std::to_string(kMostCores));
  return static_cast<unsigned>(cores);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t*, int count,
                                                                          char** values) {
  unsigned cores = 0;
  std::string out;
  for (std::string_view argument : std::vector<std::string_view>(values, values + count)) {
    if (argument.starts_with("cores=")) cores = cores_of(argument.substr(6));
    else if (argument.starts_with("out=")) out = argument.substr(4);
    else give_up("no argument " + std::string(argument) + "; cores=N and out=FILE are");
  }
  if (cores == 0 || out.empty()) give_up("cores=N and out=FILE are needed");
  simulation = std::make_unique<Simulation>(cores);
  simulation->out = out;
  qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation);
  qemu_plugin_register_vcpu_syscall_cb(id, on_syscall);
  qemu_plugin_register_vcpu_syscall_ret_cb(id, on_syscall_return);
  return 0;
}
