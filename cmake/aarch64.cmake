# Cross-build for AArch64 with Debian's compiler (g++-aarch64-linux-gnu), tests under user emulation (qemu-user):
#   cmake --preset aarch64
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)

# Headers, libraries and packages of the target alone: those of this machine would not link.
set(HM_TARGET_ROOT /usr/aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH ${HM_TARGET_ROOT})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(PKG_CONFIG_EXECUTABLE "" CACHE FILEPATH "none: it would tell of this machine's libraries")

find_program(HM_QEMU_USER qemu-aarch64)
if(HM_QEMU_USER)
  set(CMAKE_CROSSCOMPILING_EMULATOR ${HM_QEMU_USER};-L;${HM_TARGET_ROOT})
endif()
