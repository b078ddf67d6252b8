# cmake -DSTEP=install|find_package|pkg_config|subproject ... -P installed.cmake: fails if an installed hmalloc cannot be used.
cmake_minimum_required(VERSION 3.22)

function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

function(must_exist)
  foreach(file IN LISTS ARGN)
    if(NOT EXISTS ${PREFIX}/${file})
      message(FATAL_ERROR "not installed: ${file}")
    endif()
  endforeach()
endfunction()

# The library says that it is active, and the program ends well.
set(VARIANT "")
function(must_be_served)
  execute_process(COMMAND ${CMAKE_COMMAND} -E env HMALLOC_VERBOSE=1 LD_LIBRARY_PATH=${PREFIX}/${LIBDIR} ${ARGN}
    RESULT_VARIABLE result ERROR_VARIABLE said OUTPUT_QUIET)
  if(NOT result EQUAL 0 OR NOT said MATCHES "hmalloc [0-9.]+${VARIANT}: active")
    message(FATAL_ERROR "${ARGN}: result ${result}, and on standard error:\n${said}")
  endif()
endfunction()

if(STEP STREQUAL install)
  file(REMOVE_RECURSE ${PREFIX})
  run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${PREFIX})
  must_exist(${LIBDIR}/libhmalloc.so ${LIBDIR}/libhmalloc.so.0 ${LIBDIR}/libhmalloc-checked.so
    ${LIBDIR}/libhmalloc-hardened.so ${LIBDIR}/libhmalloc.a
    ${LIBDIR}/cmake/hmalloc/hmalloc-config.cmake ${LIBDIR}/pkgconfig/hmalloc.pc
    include/hmalloc/hmalloc.h include/hmalloc/hmalloc_local.h include/hmalloc/hmalloc.hpp bin/hmalloc
    libexec/hmalloc/baselines/libone_lock.so)
  # Nothing that is installed may name the folders it was built in.
  file(GLOB_RECURSE texts ${PREFIX}/${LIBDIR}/*.cmake ${PREFIX}/${LIBDIR}/*.pc)
  foreach(text IN LISTS texts)
    file(STRINGS ${text} lines)
    string(FIND "${lines}" ${SOURCE} at)
    if(NOT at EQUAL -1)
      message(FATAL_ERROR "${text} names the source folder")
    endif()
  endforeach()

elseif(STEP STREQUAL find_package)
  file(REMOVE_RECURSE ${WORK}/find_package)
  run(${CMAKE_COMMAND} -S ${SOURCE}/tests/install/consumer -B ${WORK}/find_package -G ${GENERATOR}
    -DCMAKE_PREFIX_PATH=${PREFIX} -DCMAKE_C_COMPILER=${CC} -DCMAKE_CXX_COMPILER=${CXX} -DEXAMPLES=${SOURCE}/examples)
  run(${CMAKE_COMMAND} --build ${WORK}/find_package)
  foreach(name drop_in local shared containers)
    must_be_served(${WORK}/find_package/examples/example-${name})
  endforeach()
  must_be_served(${WORK}/find_package/with-archive)
  must_be_served(${WORK}/find_package/wholly-static)

elseif(STEP STREQUAL pkg_config)
  find_program(PKG_CONFIG NAMES pkg-config pkgconf)
  if(NOT PKG_CONFIG)
    message(STATUS "pkg-config is missing")
    return()
  endif()
  set(ENV{PKG_CONFIG_PATH} ${PREFIX}/${LIBDIR}/pkgconfig)
  # What pkg-config says, as a list.
  function(ask out)
    execute_process(COMMAND ${PKG_CONFIG} ${ARGN} hmalloc OUTPUT_VARIABLE answer COMMAND_ERROR_IS_FATAL ANY)
    separate_arguments(answer UNIX_COMMAND "${answer}")
    set(${out} ${answer} PARENT_SCOPE)
  endfunction()
  file(MAKE_DIRECTORY ${WORK}/pkg_config)
  ask(flags --cflags --libs)
  run(${CC} -std=gnu11 ${SOURCE}/examples/local.c -o ${WORK}/pkg_config/local ${flags})
  must_be_served(${WORK}/pkg_config/local)
  ask(flags --static --cflags --libs)
  run(${CC} -std=gnu11 -static ${SOURCE}/examples/shared.c -o ${WORK}/pkg_config/static ${flags})
  must_be_served(${WORK}/pkg_config/static)

elseif(STEP STREQUAL subproject)
  set(PREFIX ${WORK}/nothing)  # or programs would find the installed library there before the one that they were built with
  foreach(how add_subdirectory FetchContent)
    set(folder "${WORK}/sub project ${how}")
    file(REMOVE_RECURSE ${folder})
    run(${CMAKE_COMMAND} -S ${SOURCE}/tests/install/subproject -B ${folder} -G ${GENERATOR} -DHOW=${how} -DHMALLOC=${SOURCE}
      -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_COMPILER=${CC} -DCMAKE_CXX_COMPILER=${CXX})
  endforeach()
  run(${CMAKE_COMMAND} --build ${folder} --target with-shared)
  must_be_served(${folder}/with-shared)
  run(${CMAKE_COMMAND} ${folder} -DHMALLOC_HARDENED=ON)
  run(${CMAKE_COMMAND} --build ${folder} --target with-shared with-archive)
  set(VARIANT " hardened")
  must_be_served(${folder}/with-shared)
  must_be_served(${folder}/with-archive)

else()
  message(FATAL_ERROR "no step ${STEP}")
endif()
