// What is used of QEMU's interface for plugins (version 1: QEMU 7 and 8), as its documentation describes it
// (docs/devel/tcg-plugins).  Declared here because distributions do not package QEMU's own header.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {

using qemu_plugin_id_t = std::uint64_t;
using qemu_plugin_meminfo_t = std::uint32_t;

struct qemu_info_t;       // opaque here: the arguments say what has to be known
struct qemu_plugin_tb;    // a block of translated instructions
struct qemu_plugin_insn;  // one of them

enum qemu_plugin_cb_flags { QEMU_PLUGIN_CB_NO_REGS };
enum qemu_plugin_mem_rw { QEMU_PLUGIN_MEM_R = 1, QEMU_PLUGIN_MEM_W, QEMU_PLUGIN_MEM_RW };

using qemu_plugin_udata_cb = void (*)(qemu_plugin_id_t, void*);
using qemu_plugin_vcpu_udata_cb = void (*)(unsigned vcpu, void*);
using qemu_plugin_vcpu_mem_cb = void (*)(unsigned vcpu, qemu_plugin_meminfo_t, std::uint64_t address, void*);
using qemu_plugin_tb_trans_cb = void (*)(qemu_plugin_id_t, qemu_plugin_tb*);
using qemu_plugin_syscall_cb = void (*)(qemu_plugin_id_t, unsigned vcpu, std::int64_t number, std::uint64_t, std::uint64_t,
                                        std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t,
                                        std::uint64_t);
using qemu_plugin_syscall_ret_cb = void (*)(qemu_plugin_id_t, unsigned vcpu, std::int64_t number, std::int64_t result);

void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t, qemu_plugin_tb_trans_cb);
void qemu_plugin_register_vcpu_insn_exec_cb(qemu_plugin_insn*, qemu_plugin_vcpu_udata_cb, qemu_plugin_cb_flags, void*);
void qemu_plugin_register_vcpu_mem_cb(qemu_plugin_insn*, qemu_plugin_vcpu_mem_cb, qemu_plugin_cb_flags, qemu_plugin_mem_rw,
                                      void*);
void qemu_plugin_register_vcpu_syscall_cb(qemu_plugin_id_t, qemu_plugin_syscall_cb);
void qemu_plugin_register_vcpu_syscall_ret_cb(qemu_plugin_id_t, qemu_plugin_syscall_ret_cb);

std::size_t qemu_plugin_tb_n_insns(const qemu_plugin_tb*);
qemu_plugin_insn* qemu_plugin_tb_get_insn(const qemu_plugin_tb*, std::size_t);
std::uint64_t qemu_plugin_insn_vaddr(const qemu_plugin_insn*);
std::size_t qemu_plugin_insn_size(const qemu_plugin_insn*);
const void* qemu_plugin_insn_data(const qemu_plugin_insn*);
unsigned qemu_plugin_mem_size_shift(qemu_plugin_meminfo_t);
bool qemu_plugin_mem_is_store(qemu_plugin_meminfo_t);

}  // extern "C"
