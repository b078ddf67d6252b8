# The port builds the tree that it lies in, as the Conan recipe does.
get_filename_component(SOURCE_PATH "${CMAKE_CURRENT_LIST_DIR}/../.." ABSOLUTE)

# Both libraries are installed whatever the triplet says, and only optimised ones: a program chooses among hmalloc::hmalloc and
# hmalloc::hmalloc-static, and a malloc that is not optimised is of no use to who debugs a program.
set(VCPKG_BUILD_TYPE release)
vcpkg_cmake_configure(SOURCE_PATH "${SOURCE_PATH}" OPTIONS -DHMALLOC_BUILD_TESTS=OFF -DHMALLOC_BUILD_BENCH=OFF
  -DHMALLOC_BUILD_PDES=OFF -DHMALLOC_BUILD_BASELINES=OFF)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH lib/cmake/hmalloc)
vcpkg_fixup_pkgconfig()

# Manual pages and documentation have no place in a tree of vcpkg's.
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/share/doc" "${CURRENT_PACKAGES_DIR}/share/man")
file(INSTALL "${CMAKE_CURRENT_LIST_DIR}/usage" DESTINATION "${CURRENT_PACKAGES_DIR}/share/${PORT}")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
