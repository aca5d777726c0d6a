# Installed package: headers, libraries, find_package(hurray) and pkg-config files.
include(CMakePackageConfigHelpers)

set(layers core io)
if(HURRAY_BUILD_C)
  list(APPEND layers c)
endif()
set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/hurray")

list(TRANSFORM layers PREPEND hurray_ OUTPUT_VARIABLE targets)
install(TARGETS ${targets} EXPORT hurrayTargets
  LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
  ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}"
  RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}"
  FILE_SET HEADERS DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
install(EXPORT hurrayTargets NAMESPACE hurray:: DESTINATION "${package_dir}")

# Before 1.0 a new minor version may break a caller.
write_basic_package_version_file("${PROJECT_BINARY_DIR}/hurrayConfigVersion.cmake"
  VERSION ${PROJECT_VERSION} COMPATIBILITY SameMinorVersion)
install(FILES
  "${CMAKE_CURRENT_LIST_DIR}/hurrayConfig.cmake" "${PROJECT_BINARY_DIR}/hurrayConfigVersion.cmake"
  DESTINATION "${package_dir}")

# A .pc file finds its prefix from its own place, so that an installed tree can be moved.
cmake_path(IS_ABSOLUTE CMAKE_INSTALL_LIBDIR absolute_libdir)
cmake_path(IS_ABSOLUTE CMAKE_INSTALL_INCLUDEDIR absolute_includedir)
if(absolute_libdir OR absolute_includedir)
  set(pc_prefix "${CMAKE_INSTALL_PREFIX}")
else()
  file(RELATIVE_PATH up "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
  string(REGEX REPLACE "/$" "" up "${up}")
  set(pc_prefix "\${pcfiledir}/${up}")
endif()
cmake_path(APPEND pc_libdir "\${prefix}" "${CMAKE_INSTALL_LIBDIR}")
cmake_path(APPEND pc_includedir "\${prefix}" "${CMAKE_INSTALL_INCLUDEDIR}")
set(pc_description_core "Tensor descriptors: bytes in, values out")
set(pc_description_io "Tensor files and streams")
set(pc_description_c "Tensors, files and streams through C")
set(pc_requires_core "")
set(pc_requires_io "hurray-core = ${PROJECT_VERSION}")
set(pc_requires_c "")
foreach(layer IN LISTS layers)
  set(pc_definitions "")
  if(NOT BUILD_SHARED_LIBS AND NOT layer STREQUAL "c")  # whose headers know nothing of C++
    set(pc_definitions " -DHURRAY_STATIC")
  endif()
  set(pc_description "${pc_description_${layer}}")
  set(pc_requires "${pc_requires_${layer}}")
  configure_file("${CMAKE_CURRENT_LIST_DIR}/hurray.pc.in"
    "${PROJECT_BINARY_DIR}/hurray-${layer}.pc" @ONLY)
  install(FILES "${PROJECT_BINARY_DIR}/hurray-${layer}.pc"
    DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
endforeach()

install(FILES "${PROJECT_SOURCE_DIR}/LICENSE-MIT" "${PROJECT_SOURCE_DIR}/LICENSE-APACHE"
  DESTINATION "${CMAKE_INSTALL_DATADIR}/doc/hurray")
