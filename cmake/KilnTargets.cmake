# kiln_add_library, kiln_add_program, kiln_add_test: one call a target, the same flags everywhere.
include(GoogleTest)

function(kiln_add_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  # Kiln's own flags are not for those who use the installed library.
  target_link_libraries(${name} PUBLIC $<BUILD_INTERFACE:kiln-flags> ${ARG_DEPS})
endfunction()

function(kiln_add_program name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE kiln-flags ${ARG_DEPS})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
endfunction()

# A GoogleTest program; every TEST in it becomes a ctest test, a GTEST_SKIP a skipped one.
# Tests see KILN_SOURCE_DIR (files of the repository) and KILN_BINARY_DIR/bin (programs under test).
# LABELS full: runs only in 'scripts/test.sh --full'.  TIMEOUT: seconds a test.
function(kiln_add_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT" "SOURCES;DEPS;LABELS;PROGRAMS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 600)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE kiln-flags kiln-test-support ${ARG_DEPS} GTest::gtest GTest::gtest_main)
  # In a bundle tests run from the unpacked folder, their data beside them (scripts/bundle.sh).
  set(source_dir ${CMAKE_SOURCE_DIR})
  set(binary_dir ${CMAKE_BINARY_DIR})
  if(KILN_STATIC_RUNTIME)
    set(source_dir .)
    set(binary_dir .)
  endif()
  target_compile_definitions(${name} PRIVATE KILN_SOURCE_DIR="${source_dir}" KILN_BINARY_DIR="${binary_dir}")
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  if(ARG_PROGRAMS)
    add_dependencies(${name} ${ARG_PROGRAMS})
  endif()
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60 TEST_PREFIX "${name}/"
    PROPERTIES TIMEOUT ${ARG_TIMEOUT} SKIP_REGULAR_EXPRESSION "\\[  SKIPPED \\]" LABELS "${ARG_LABELS}")
endfunction()

# Recorded locations name files from the repository's root, whatever the build folder; a compiler cache may hand the compiler
# paths relative to that folder.
function(kiln_cut_source_root target)
  file(RELATIVE_PATH up ${CMAKE_BINARY_DIR} ${CMAKE_SOURCE_DIR})
  target_compile_options(${target} PRIVATE -fmacro-prefix-map=${CMAKE_SOURCE_DIR}/= -fmacro-prefix-map=${up}=)
  # ccache does not look at the map's value; it does at definitions.
  target_compile_definitions(${target} PRIVATE KILN_SOURCE_ROOT="${CMAKE_SOURCE_DIR}")
endfunction()
