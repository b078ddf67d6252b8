# Cross-build for musl with Debian's wrapper (musl-tools): the library, and programs in C, for Debian has no C++ runtime on musl.
#   cmake --preset musl
# Where musl is the system's C library, as on Alpine, this is not needed.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR ${CMAKE_HOST_SYSTEM_PROCESSOR})
set(CMAKE_C_COMPILER musl-gcc)
set(CMAKE_CXX_COMPILER g++)
