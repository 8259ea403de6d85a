# Options and flags that every Kiln target shares.
option(KILN_BUILD_TESTS "Build the tests" ON)
option(KILN_STATIC_RUNTIME "Link libstdc++ and libgcc statically (programs for machines without our toolchain)" OFF)
option(KILN_PRECOMPILE "Parse the headers that nearly every file includes once (Precompiled.h)" ON)
set(KILN_UNTIMED_FLAGS "" CACHE STRING "Flags of what nobody times: the tests' own files and the commands, as in -O0")
set(KILN_SANITIZE "" CACHE STRING "Sanitizers, as in -fsanitize=: empty, 'address,undefined' or 'thread'")

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  message(FATAL_ERROR "Kiln is built with clang (found ${CMAKE_CXX_COMPILER_ID}): use a preset, "
                      "'cmake --preset dev', after 'sudo scripts/setup.sh'.")
endif()

add_library(kiln-flags INTERFACE)
target_compile_options(kiln-flags INTERFACE -Wall -Wextra -Werror -Wno-unused-parameter -Wno-deprecated-declarations -Wno-pass-failed -ffp-contract=off)
target_include_directories(kiln-flags INTERFACE ${CMAKE_SOURCE_DIR} ${CMAKE_SOURCE_DIR}/runtime/include)
if(KILN_SANITIZE)
  # "function": the driver's functions come from dlsym under declarations of our own, whose types cannot match to the letter.
  target_compile_options(kiln-flags INTERFACE -fsanitize=${KILN_SANITIZE} -fno-sanitize=function -fno-sanitize-recover=all
                                              -fno-omit-frame-pointer)
  target_link_options(kiln-flags INTERFACE -fsanitize=${KILN_SANITIZE})
endif()
if(KILN_STATIC_RUNTIME)
  target_link_options(kiln-flags INTERFACE -static-libstdc++ -static-libgcc)
endif()
