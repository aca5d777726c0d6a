# Compiler cache, warnings and sanitizers: directory-wide options of a top-level build. They are
# properties of this build tree only and never part of an exported target.

if(NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER AND NOT DEFINED ENV{CMAKE_CXX_COMPILER_LAUNCHER})
  find_program(HURRAY_CCACHE ccache)
  if(HURRAY_CCACHE)
    set(CMAKE_CXX_COMPILER_LAUNCHER "${HURRAY_CCACHE}")
  endif()
endif()

if(HURRAY_WARNINGS)
  add_compile_options(-Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow)
endif()

if(HURRAY_COVERAGE)
  add_compile_options(-fprofile-instr-generate -fcoverage-mapping)
  add_link_options(-fprofile-instr-generate)
endif()

set(HURRAY_SANITIZE_FLAGS "")
if(HURRAY_SANITIZE)
  set(sanitizers "${HURRAY_SANITIZE}")
  if(sanitizers MATCHES "^(1|[Oo][Nn]|[Yy][Ee][Ss]|[Tt][Rr][Uu][Ee])$")
    set(sanitizers "address,undefined")
  endif()
  set(HURRAY_SANITIZE_FLAGS
    "-fsanitize=${sanitizers}" -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_compile_options(${HURRAY_SANITIZE_FLAGS} -D_GLIBCXX_ASSERTIONS)
  add_link_options(${HURRAY_SANITIZE_FLAGS})
endif()
