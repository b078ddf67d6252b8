# cmake -DSOURCE=... -DWORK=... -DGENERATOR=... -P musl.cmake: builds the library for musl, and fails if programs that use musl are
# not served by it, preloaded and linked.
cmake_minimum_required(VERSION 3.22)

find_program(MUSL_GCC musl-gcc)
if(NOT MUSL_GCC)
  message(STATUS "musl-gcc is missing (Debian: musl-tools)")
  return()
endif()

function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY OUTPUT_QUIET)
endfunction()

function(must_say expected result) # COMMAND...
  execute_process(COMMAND ${CMAKE_COMMAND} -E env HMALLOC_VERBOSE=1 ${ARGN}
    RESULT_VARIABLE ended ERROR_VARIABLE said OUTPUT_QUIET TIMEOUT 120)
  if(NOT ended STREQUAL result OR NOT said MATCHES ${expected})
    message(FATAL_ERROR "${ARGN}: ended with ${ended}, and on standard error:\n${said}")
  endif()
endfunction()

run(${CMAKE_COMMAND} -S ${SOURCE} -B ${WORK}/build -G ${GENERATOR} -DCMAKE_TOOLCHAIN_FILE=${SOURCE}/cmake/musl.cmake
  -DCMAKE_BUILD_TYPE=Release -DCMAKE_COMPILE_WARNING_AS_ERROR=ON)
run(${CMAKE_COMMAND} --build ${WORK}/build --target hmalloc hmalloc_static hmalloc-checked hmalloc-hardened)
foreach(program churn twice)
  run(${MUSL_GCC} -std=gnu11 -Wall -Wextra -Werror -O2 ${SOURCE}/tests/musl/${program}.c -o ${WORK}/${program})
endforeach()
run(${MUSL_GCC} -std=gnu11 -static -O2 ${SOURCE}/tests/musl/churn.c ${WORK}/build/libhmalloc.a -Wl,--undefined=malloc -o ${WORK}/static)
run(${MUSL_GCC} -std=gnu11 -O2 -I${SOURCE}/include ${SOURCE}/examples/local.c -L${WORK}/build -Wl,-rpath,${WORK}/build -lhmalloc
  -o ${WORK}/linked)

foreach(variant "" -checked -hardened)
  string(REPLACE - " " word "${variant}")
  must_say("hmalloc [0-9.]+${word}: active" 0 LD_PRELOAD=${WORK}/build/libhmalloc${variant}.so ${WORK}/churn)
  must_say("free.*double free.*Subprocess aborted" 1 LD_PRELOAD=${WORK}/build/libhmalloc${variant}.so ${WORK}/twice)
endforeach()
must_say("hmalloc [0-9.]+: active" 0 ${WORK}/static)
must_say("hmalloc [0-9.]+: active" 0 ${WORK}/linked)
must_say("HMALLOC_GUARD ignored" 0 HMALLOC_GUARD=1 LD_PRELOAD=${WORK}/build/libhmalloc.so ${WORK}/churn)
must_say("no profile: no stacks can be taken" 0 HMALLOC_PROFILE=heap LD_PRELOAD=${WORK}/build/libhmalloc.so ${WORK}/churn)
