# MLIR and LLVM 22.1 as Debian packages them, linked in one of two ways, never mixed (both at once would put two copies of
# LLVM's globals into a process):
#   shared  libMLIR.so and libLLVM.so: fast links, plugins work.  Development builds.
#   static  the archives, hidden inside libkiln-compiler.so.  Release and bundle builds (KILN_STATIC_LLVM).
option(KILN_STATIC_LLVM "Link LLVM and MLIR statically, hidden inside libkiln-compiler" OFF)

# What LLVM links for itself is linked the same way: a static libkiln-compiler.so needs libc and libm alone.
set(ZLIB_USE_STATIC_LIBS ${KILN_STATIC_LLVM})
if(NOT TARGET zstd::libzstd_shared)
  # LLVM's export files name it; Debian's libzstd-dev has no CMake package.
  if(KILN_STATIC_LLVM)
    find_library(KILN_ZSTD NAMES libzstd.a)
  else()
    find_library(KILN_ZSTD NAMES libzstd.so.1 libzstd.so libzstd.a)
  endif()
  add_library(zstd::libzstd_shared UNKNOWN IMPORTED GLOBAL)
  set_target_properties(zstd::libzstd_shared PROPERTIES IMPORTED_LOCATION "${KILN_ZSTD}")
endif()
find_package(MLIR 22.1 REQUIRED CONFIG HINTS /usr/lib/llvm-22/lib/cmake/mlir)

list(APPEND CMAKE_MODULE_PATH ${MLIR_CMAKE_DIR} ${LLVM_CMAKE_DIR})
include(TableGen)
include(AddLLVM)
include(AddMLIR)

# kiln-mlir: headers and flags of everything that includes MLIR.  kiln-mlir-link: what the final link needs.
add_library(kiln-mlir INTERFACE)
target_link_libraries(kiln-mlir INTERFACE kiln-flags)
target_include_directories(kiln-mlir SYSTEM INTERFACE ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS})
target_include_directories(kiln-mlir INTERFACE ${CMAKE_BINARY_DIR})
target_compile_options(kiln-mlir INTERFACE -fno-exceptions)

add_library(kiln-mlir-link INTERFACE)
if(KILN_STATIC_LLVM)
  include(KilnStaticLLVM)
else()
  target_link_libraries(kiln-mlir-link INTERFACE MLIR LLVM)
endif()

# kiln_mlir_tablegen(NAME FILE.td generator=output ...): generated files next to the source's path in the build tree.
function(kiln_mlir_tablegen name td)
  set(LLVM_TARGET_DEFINITIONS ${td})
  foreach(pair ${ARGN})
    string(REGEX MATCH "^([^=]+)=(.*)$" _ "${pair}")
    set(output ${CMAKE_MATCH_1})
    string(REPLACE " " ";" arguments "${CMAKE_MATCH_2}")
    mlir_tablegen(${output} ${arguments} -I ${CMAKE_SOURCE_DIR})
  endforeach()
  add_public_tablegen_target(${name})
endfunction()

# kiln_reference_page(NAME FILE.td generator arguments ...): build/docs/reference/NAME.md, checked by tests/docs; the target
# kiln-reference writes all pages to docs/reference.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
add_custom_target(kiln-reference)
function(kiln_reference_page name td)
  set(LLVM_TARGET_DEFINITIONS ${td})
  mlir_tablegen(${name}.md.inc ${ARGN} -I ${CMAKE_SOURCE_DIR})
  set(page ${CMAKE_BINARY_DIR}/docs/reference/${name}.md)
  set(generate ${CMAKE_SOURCE_DIR}/docs/reference/generate.py)
  file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/docs/reference)
  set(inputs ${CMAKE_CURRENT_BINARY_DIR}/${name}.md.inc)
  if("-gen-dialect-doc" IN_LIST ARGN) # and the operations' definitions, for their effects
    cmake_path(GET td STEM stem)
    list(APPEND inputs ${CMAKE_CURRENT_BINARY_DIR}/${stem}.cpp.inc)
  endif()
  add_custom_command(OUTPUT ${page} DEPENDS ${inputs} ${generate}
    COMMAND Python3::Interpreter ${generate} ${page} ${inputs})
  add_custom_target(kiln-reference-${name} ALL DEPENDS ${page})
  add_custom_target(kiln-reference-${name}-write
    COMMAND ${CMAKE_COMMAND} -E copy_if_different ${page} ${CMAKE_SOURCE_DIR}/docs/reference/${name}.md DEPENDS ${page})
  add_dependencies(kiln-reference-${name}-write kiln-reference-${name})
  add_dependencies(kiln-reference kiln-reference-${name}-write)
endfunction()

# A static library of compiler code: MLIR's headers precompiled, exceptions off.
function(kiln_add_mlir_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS;GENERATED" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC kiln-mlir ${ARG_DEPS})
  if(ARG_GENERATED)
    add_dependencies(${name} ${ARG_GENERATED})
  endif()
  kiln_use_precompiled(${name} kiln-mlir-pch)
endfunction()
