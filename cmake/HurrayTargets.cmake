# hurray_add_library(<layer> [DEPENDS <target>...] [SOURCES <file>...])
#
# The library of one layer: target hurray_<layer>, alias hurray::<layer>. Sources are src/**.cpp
# unless listed, public headers are include/**.hpp and those generated into the build tree.
function(hurray_add_library layer)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "DEPENDS;SOURCES")
  set(target hurray_${layer})
  string(TOUPPER "HURRAY_${layer}_BUILDING" building)

  file(GLOB_RECURSE headers CONFIGURE_DEPENDS include/*.hpp include/*.h)
  file(GLOB_RECURSE generated "${CMAKE_CURRENT_BINARY_DIR}/include/*.hpp")
  if(NOT arg_SOURCES)
    file(GLOB_RECURSE arg_SOURCES CONFIGURE_DEPENDS src/*.cpp)
  endif()

  set(bases include)
  if(generated)
    list(APPEND bases "${CMAKE_CURRENT_BINARY_DIR}/include")
  endif()
  add_library(${target} ${arg_SOURCES})
  add_library(hurray::${layer} ALIAS ${target})
  target_sources(${target} PUBLIC
    FILE_SET HEADERS BASE_DIRS ${bases} FILES ${headers} ${generated})
  target_include_directories(${target} PRIVATE src)
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_compile_definitions(${target} PRIVATE ${building})
  if(NOT BUILD_SHARED_LIBS)
    target_compile_definitions(${target} PUBLIC HURRAY_STATIC)
  endif()
  target_link_libraries(${target} PUBLIC ${arg_DEPENDS})
  set_target_properties(${target} PROPERTIES
    EXPORT_NAME ${layer}
    VERIFY_INTERFACE_HEADER_SETS ON
    VERSION ${PROJECT_VERSION}
    SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
  if(PROJECT_IS_TOP_LEVEL)
    set_target_properties(${target} PROPERTIES INSTALL_RPATH "$ORIGIN")
  endif()
endfunction()

# hurray_compile_fast(<target>...)
#
# Under sanitizers, code that is not core or io is compiled without optimization, in half the time.
function(hurray_compile_fast)
  if(HURRAY_SANITIZE AND NOT MSVC)
    foreach(target IN LISTS ARGN)
      target_compile_options(${target} PRIVATE -O0)
    endforeach()
  endif()
endfunction()

# hurray_add_tests(<layer> [LIBRARY <target>] [DEPENDS <target>...])
#
# tests/*.cpp make one GoogleTest executable, hurray_<layer>_tests. Each folder tests/<name>/ with
# sources makes one more, hurray_<layer>_<name>_tests: the place for tests that replace a function
# at link time. Both see the layer's private headers (src/), conformance/manifest.hpp and
# HURRAY_CONFORMANCE_DIR. What private headers declare, a shared library hides: shared builds are
# tested from outside (command, examples, package) and have none of these. LIBRARY: what is tested,
# hurray::<layer> unless it is given.
function(hurray_add_tests layer)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "LIBRARY" "DEPENDS")
  if(NOT arg_LIBRARY)
    set(arg_LIBRARY hurray::${layer})
  endif()
  if(NOT HURRAY_BUILD_TESTS OR BUILD_SHARED_LIBS)
    return()
  endif()
  file(GLOB folders CONFIGURE_DEPENDS LIST_DIRECTORIES ON tests/*)
  foreach(folder IN ITEMS "${CMAKE_CURRENT_SOURCE_DIR}/tests" LISTS folders)
    file(GLOB sources CONFIGURE_DEPENDS "${folder}/*.cpp")
    if(NOT sources)
      continue()
    endif()
    cmake_path(GET folder FILENAME name)
    if(name STREQUAL "tests")
      set(target hurray_${layer}_tests)
    else()
      set(target hurray_${layer}_${name}_tests)
    endif()
    add_executable(${target} ${sources})
    target_link_libraries(${target} PRIVATE ${arg_DEPENDS} ${arg_LIBRARY} GTest::gtest_main)
    hurray_compile_fast(${target})
    target_include_directories(${target} PRIVATE src tests "${PROJECT_SOURCE_DIR}/conformance")
    target_compile_definitions(${target} PRIVATE
      HURRAY_CONFORMANCE_DIR="${PROJECT_SOURCE_DIR}/conformance"
      HURRAY_TEST_DATA_DIR="${CMAKE_CURRENT_SOURCE_DIR}/tests/data")
    gtest_discover_tests(${target}
      TEST_PREFIX "${layer}." DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
      PROPERTIES TIMEOUT 300)
  endforeach()
endfunction()
