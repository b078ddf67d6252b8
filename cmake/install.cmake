# What `cmake --install` puts where: flat, as GNUInstallDirs has it.  The prefix may still be chosen then
# (cmake --install DIR --prefix PREFIX): nothing that is installed knows it.  `--component NAME` installs a part:
#
#   runtime      lib/      libhmalloc.so.0 -> libhmalloc.so.VERSION · libhmalloc-checked.so · libhmalloc-hardened.so
#   development  lib/      libhmalloc.so -> libhmalloc.so.0 · libhmalloc.a · cmake/hmalloc/hmalloc-config.cmake ·
#                          pkgconfig/hmalloc.pc
#                include/  hmalloc/hmalloc.h · hmalloc/hmalloc_local.h · hmalloc/hmalloc.hpp
#                share/    man/man3/
#   tools        bin/, libexec/hmalloc/, share/hmalloc/   the launcher and its tools (lab/CMakeLists.txt)
#                libexec/hmalloc/baselines/               the baselines, as far as they were built
#                share/    man/man1/ · doc/hmalloc/
#   pdes         lib/      libhmalloc_pdes.a and what it stands on · cmake/hmalloc/hmalloc-pdes-targets.cmake ·
#                          libhmalloc-pdes.so, for other languages, and libhmalloc-pdes-mpi.so, which it loads for ranks
#                include/  pdes/
#                libexec/hmalloc/                         the models
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME development)
set_target_properties(hmalloc_static PROPERTIES EXPORT_NAME hmalloc-static)

install(TARGETS hmalloc hmalloc_static EXPORT hmalloc-targets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime NAMELINK_COMPONENT development
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
# hmalloc install --engine builds neither.
install(TARGETS hmalloc-checked hmalloc-hardened LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime OPTIONAL)
# For the laboratory: the launcher looks for them beside its other tools.  Whoever builds the library alone has none.
get_property(HM_BASELINE_NAMES GLOBAL PROPERTY HM_BASELINES)
foreach(name IN LISTS HM_BASELINE_NAMES)
  install(TARGETS baseline_${name}_shared LIBRARY DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/hmalloc/baselines
    COMPONENT tools OPTIONAL)
endforeach()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/hmalloc DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

set(HM_CMAKE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/hmalloc)
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/hmalloc-config.cmake.in
  ${CMAKE_BINARY_DIR}/hmalloc-config.cmake INSTALL_DESTINATION ${HM_CMAKE_DIR})
# As the soname says: what was written for an earlier version goes on with this one, until the soname changes.
write_basic_package_version_file(${CMAKE_BINARY_DIR}/hmalloc-config-version.cmake COMPATIBILITY SameMajorVersion)
install(EXPORT hmalloc-targets NAMESPACE hmalloc:: DESTINATION ${HM_CMAKE_DIR})
install(FILES ${CMAKE_BINARY_DIR}/hmalloc-config.cmake ${CMAKE_BINARY_DIR}/hmalloc-config-version.cmake
  DESTINATION ${HM_CMAKE_DIR})

# The simulation engine, as far as it was built.
if(TARGET hmalloc_pdes)
  set(HM_PDES_TARGETS hmalloc_core hmalloc_pdes hmalloc_pdes_mpi)
  if(TARGET hmalloc_pdes_app)
    list(APPEND HM_PDES_TARGETS hmalloc_pdes_app)
  endif()
  foreach(target IN LISTS HM_PDES_TARGETS)
    string(REGEX REPLACE "^hmalloc_(.*)$" "\\1" name ${target})
    string(REPLACE _ - name ${name})
    set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
  endforeach()
  install(TARGETS ${HM_PDES_TARGETS} EXPORT hmalloc-pdes-targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT pdes)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/pdes DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT pdes)
  install(EXPORT hmalloc-pdes-targets NAMESPACE hmalloc:: DESTINATION ${HM_CMAKE_DIR} COMPONENT pdes)
endif()

# From where hmalloc.pc lies up to the prefix, however deep the library folder is.
file(RELATIVE_PATH HM_PC_UP ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" HM_PC_UP ${HM_PC_UP})
foreach(which LIBDIR INCLUDEDIR)
  if(IS_ABSOLUTE ${CMAKE_INSTALL_${which}})
    set(HM_PC_${which} ${CMAKE_INSTALL_${which}})
  else()
    set(HM_PC_${which} \${prefix}/${CMAKE_INSTALL_${which}})
  endif()
endforeach()
configure_file(${PROJECT_SOURCE_DIR}/cmake/hmalloc.pc.in ${CMAKE_BINARY_DIR}/hmalloc.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/hmalloc.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

install(FILES ${PROJECT_SOURCE_DIR}/README.md ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/CHANGELOG.md
  ${PROJECT_SOURCE_DIR}/SECURITY.md ${PROJECT_SOURCE_DIR}/docs/design.md ${PROJECT_SOURCE_DIR}/docs/deviations.md
  ${PROJECT_SOURCE_DIR}/docs/tuning.md ${PROJECT_SOURCE_DIR}/docs/observability.md ${PROJECT_SOURCE_DIR}/docs/security.md
  ${PROJECT_SOURCE_DIR}/docs/servers.md ${PROJECT_SOURCE_DIR}/docs/switching.md ${PROJECT_SOURCE_DIR}/docs/packaging.md
  ${PROJECT_SOURCE_DIR}/docs/python.md ${PROJECT_SOURCE_DIR}/docs/rust.md
  ${PROJECT_SOURCE_DIR}/docs/stats.schema.json ${PROJECT_SOURCE_DIR}/docs/pdes.md ${PROJECT_SOURCE_DIR}/docs/pdes-models.md
  ${PROJECT_SOURCE_DIR}/docs/pdes-library.md ${PROJECT_SOURCE_DIR}/docs/pdes-python.md
  ${PROJECT_SOURCE_DIR}/docs/pdes-comparison.md ${PROJECT_SOURCE_DIR}/docs/pdes-design.md DESTINATION ${CMAKE_INSTALL_DOCDIR}
  COMPONENT tools)
add_subdirectory(${PROJECT_SOURCE_DIR}/docs/man ${CMAKE_BINARY_DIR}/man)
