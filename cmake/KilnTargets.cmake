# kiln_add_library, kiln_add_program, kiln_add_test: one call a target, the same flags everywhere.
include(GoogleTest)
find_package(GTest REQUIRED)

# Headers that nearly every file includes, parsed once: kiln-pch of libraries, kiln-untimed-pch of those that nobody times,
# kiln-test-pch of tests; folders with heavy headers of their own have one more, which their targets name with PRECOMPILED.
# Files still include what they use: the preset tsan builds without these.
function(kiln_add_precompiled name)
  if(NOT KILN_PRECOMPILE AND NOT name STREQUAL "kiln-mlir-pch") # MLIR without would take five times as long
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "HEADERS;DEPS;FLAGS" ${ARGN})
  set(source ${CMAKE_BINARY_DIR}/${name}.cpp)
  if(NOT EXISTS ${source})
    file(WRITE ${source} "// Carries the precompiled header.\n")
  endif()
  add_library(${name} OBJECT ${source})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS})
  # Without its time of making the same header is the same to a compiler cache.
  target_compile_options(${name} PRIVATE ${ARG_FLAGS} "SHELL:-Xclang -fno-pch-timestamp")
  target_precompile_headers(${name} PRIVATE ${ARG_HEADERS})
endfunction()

# Compiles `name` with the precompiled header of `pch`, whose flags must be the same.
function(kiln_use_precompiled name pch)
  if(NOT KILN_PRECOMPILE AND NOT TARGET ${pch})
    return()
  endif()
  get_target_property(type ${name} TYPE)
  if(type STREQUAL "EXECUTABLE")
    # As the header was compiled.
    set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_compile_options(${name} PRIVATE -fPIC)
  endif()
  target_precompile_headers(${name} REUSE_FROM ${pch})
endfunction()

separate_arguments(KILN_UNTIMED_OPTIONS UNIX_COMMAND "${KILN_UNTIMED_FLAGS}")
kiln_add_precompiled(kiln-pch HEADERS ${CMAKE_SOURCE_DIR}/support/Precompiled.h DEPS kiln-flags)
kiln_add_precompiled(kiln-test-pch HEADERS ${CMAKE_SOURCE_DIR}/tests/support/Precompiled.h DEPS kiln-flags GTest::gtest
  FLAGS ${KILN_UNTIMED_OPTIONS})
kiln_add_precompiled(kiln-untimed-pch HEADERS ${CMAKE_SOURCE_DIR}/support/Precompiled.h DEPS kiln-flags
  FLAGS ${KILN_UNTIMED_OPTIONS})

# UNTIMED: nobody times it in a build of developers.
function(kiln_add_library name)
  cmake_parse_arguments(ARG "UNTIMED" "PRECOMPILED" "SOURCES;DEPS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  # Kiln's own flags are not for those who use the installed library.
  target_link_libraries(${name} PUBLIC $<BUILD_INTERFACE:kiln-flags> ${ARG_DEPS})
  set(precompiled kiln-pch)
  if(ARG_UNTIMED)
    target_compile_options(${name} PRIVATE ${KILN_UNTIMED_OPTIONS})
    set(precompiled kiln-untimed-pch)
  endif()
  if(ARG_PRECOMPILED)
    set(precompiled ${ARG_PRECOMPILED})
  endif()
  kiln_use_precompiled(${name} ${precompiled})
endfunction()

function(kiln_add_program name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE kiln-flags ${ARG_DEPS})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
endfunction()

# A GoogleTest program; every TEST in it becomes a ctest test, a GTEST_SKIP a skipped one.
# Tests see KILN_SOURCE_DIR (files of the repository) and KILN_BINARY_DIR/bin (programs under test).
# LABELS full: runs only in 'scripts/test.sh --full'.  TIMEOUT: seconds a test.  MLIR: includes MLIR and has its flags.
# OPTIMISED: its own files calculate for seconds.
function(kiln_add_test name)
  cmake_parse_arguments(ARG "MLIR;OPTIMISED" "TIMEOUT;PRECOMPILED" "SOURCES;DEPS;LABELS;PROGRAMS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 600)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE kiln-flags kiln-test-support ${ARG_DEPS} GTest::gtest GTest::gtest_main)
  # In a bundle tests run from the unpacked folder, their data next to them (scripts/bundle.sh).
  set(source_dir ${CMAKE_SOURCE_DIR})
  set(binary_dir ${CMAKE_BINARY_DIR})
  if(KILN_STATIC_RUNTIME)
    set(source_dir .)
    set(binary_dir .)
  endif()
  target_compile_definitions(${name} PRIVATE KILN_SOURCE_DIR="${source_dir}" KILN_BINARY_DIR="${binary_dir}")
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  set(precompiled kiln-pch)
  if(ARG_MLIR)
    set(precompiled kiln-mlir-pch)
  elseif(NOT ARG_OPTIMISED)
    target_compile_options(${name} PRIVATE ${KILN_UNTIMED_OPTIONS})
    set(precompiled kiln-test-pch)
  endif()
  if(ARG_PRECOMPILED)
    set(precompiled ${ARG_PRECOMPILED})
  endif()
  kiln_use_precompiled(${name} ${precompiled})
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
