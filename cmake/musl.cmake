# Builds the library for musl by Debian's wrapper of gcc (musl-tools):
#   cmake --preset musl && cmake --build --preset musl
# Not needed where musl is the system's C library, as on Alpine.  Debian has no C++ runtime for musl; the library takes none.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR ${CMAKE_HOST_SYSTEM_PROCESSOR})
set(CMAKE_C_COMPILER musl-gcc)
set(CMAKE_CXX_COMPILER g++)
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)  # programs in C++ cannot be linked

foreach(what multiarch dump)
  set(option_multiarch -print-multiarch)
  set(option_dump -dumpversion)
  execute_process(COMMAND ${CMAKE_CXX_COMPILER} ${option_${what}} OUTPUT_VARIABLE ${what} OUTPUT_STRIP_TRAILING_WHITESPACE)
endforeach()
if(NOT multiarch)
  message(FATAL_ERROR "musl.cmake is for Debian's gcc and musl-tools")
endif()
string(REGEX REPLACE "-gnu$" "-musl" musl ${multiarch})
# Of the system's headers the kernel's alone: all others are glibc's.
set(kernel ${CMAKE_BINARY_DIR}/kernel-headers)
file(MAKE_DIRECTORY ${kernel})
foreach(folder linux asm-generic ${multiarch}/asm)
  cmake_path(GET folder FILENAME name)
  file(CREATE_LINK /usr/include/${folder} ${kernel}/${name} SYMBOLIC)
endforeach()
set(CMAKE_C_FLAGS_INIT "-idirafter ${kernel}")
string(JOIN " " CMAKE_CXX_FLAGS_INIT -specs=/usr/lib/${musl}/musl-gcc.specs -nostdinc++
  "-isystem /usr/include/c++/${dump} -isystem /usr/include/${multiarch}/c++/${dump} -isystem /usr/include/${musl}"
  "-idirafter ${kernel} -include ${CMAKE_CURRENT_LIST_DIR}/musl_libstdcxx.h")

foreach(part TESTS BENCH PDES BASELINES)
  set(HMALLOC_BUILD_${part} OFF CACHE BOOL "musl: the library alone")
endforeach()
