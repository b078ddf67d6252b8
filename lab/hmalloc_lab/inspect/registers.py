"""Sets of registers, as the kernel gives them to tracers and writes them into core files."""

import struct

GENERAL, FLOATING, EXTENDED, THREAD_POINTER = 1, 2, 0x202, 0x401  # NT_PRSTATUS, NT_PRFPREG, NT_X86_XSTATE, NT_ARM_TLS

_AMD64 = {"stack": 19, "thread": 21}  # struct user_regs_struct: rsp, fs_base
_ARM64 = {"stack": 31}                # struct user_pt_regs: sp


def of_machine(machine: str, general: bytes, thread_pointer: bytes) -> tuple[int, int]:
    """The stack pointer and the thread pointer; 0 where they are not known."""
    places = _ARM64 if machine == "aarch64" else _AMD64
    if len(general) < 8 * (places["stack"] + 1):
        return 0, 0
    words = struct.unpack(f"<{len(general) // 8}Q", general[:len(general) // 8 * 8])
    if "thread" in places:
        return words[places["stack"]], words[places["thread"]] if len(words) > places["thread"] else 0
    return words[places["stack"]], int.from_bytes(thread_pointer[:8], "little")
