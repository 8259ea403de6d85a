# What `cmake --install` makes: one relocatable folder.
#   bin/                 kiln, kiln-opt; with shared MLIR kiln-reduce, kiln-lsp-server
#   lib/                 the runtime's and the kernels' archives; libkiln.so, which has the commands of kiln; libkiln-compiler.so
#                        with its helper program next to it; libkiln-redis.so, libkiln-mpi.so
#   lib/cmake/Kiln/      find_package(Kiln)
#   include/kiln/        the headers, under the names that they have in this repository ("kiln/Jit.h")
# Programs take kiln::runtime, kiln::language and kiln::kernels, which need no LLVM; passes take kiln::compiler (component
# `compiler`), which needs MLIR of the version that Kiln was built with.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(headers ${CMAKE_INSTALL_INCLUDEDIR}/kiln)
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/Kiln)

# Builds all that is installed, so that `cmake --install` works without the tests.
add_custom_target(kiln-installed)
function(kiln_install_target name)
  install(TARGETS ${name} ${ARGN})
  add_dependencies(kiln-installed ${name})
endfunction()

# `name` and every Kiln library that it is linked from.
function(kiln_closure name out)
  set(seen ${${out}})
  if(NOT name IN_LIST seen)
    list(APPEND seen ${name})
    get_target_property(libraries ${name} INTERFACE_LINK_LIBRARIES)
    foreach(library IN LISTS libraries)
      if(TARGET ${library} AND library MATCHES "^kiln-")
        kiln_closure(${library} seen)
      endif()
    endforeach()
  endif()
  set(${out} ${seen} PARENT_SCOPE)
endfunction()

set(libraries)
foreach(library kiln-library kiln-jit kiln-language)
  kiln_closure(${library} libraries)
endforeach()
foreach(library IN LISTS libraries)
  string(REGEX REPLACE "^kiln-" "" name ${library})
  set_target_properties(${library} PROPERTIES EXPORT_NAME ${name})
  target_include_directories(${library} INTERFACE $<INSTALL_INTERFACE:${headers}>)
  target_compile_features(${library} INTERFACE cxx_std_20)
endforeach()
# What users call: the device and the JIT are one thing to them, a kernel and its operation too.
set_target_properties(kiln-runtime PROPERTIES EXPORT_NAME device)
set_target_properties(kiln-jit PROPERTIES EXPORT_NAME runtime)
set_target_properties(kiln-kernels PROPERTIES EXPORT_NAME recorded-kernels)
set_target_properties(kiln-library PROPERTIES EXPORT_NAME kernels)
foreach(library IN LISTS libraries)
  kiln_install_target(${library} EXPORT KilnTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
endforeach()
install(EXPORT KilnTargets NAMESPACE kiln:: DESTINATION ${package})
kiln_install_target(kiln RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
if(TARGET kiln-door) # which has the commands
  kiln_install_target(kiln-door LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()

if(TARGET kiln-redis)
  kiln_install_target(kiln-redis LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
if(TARGET kiln-mpi)
  kiln_install_target(kiln-mpi LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()

function(kiln_install_headers)
  foreach(folder ${ARGN})
    cmake_path(GET folder PARENT_PATH parent)
    install(DIRECTORY ${CMAKE_SOURCE_DIR}/${folder} DESTINATION ${headers}/${parent}
            FILES_MATCHING PATTERN "*.h" PATTERN "*.def" PATTERN "*.td" PATTERN "bench" EXCLUDE)
  endforeach()
endfunction()
kiln_install_headers(support compiler/language kernels runtime/io)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/runtime/include/kiln DESTINATION ${headers})
install(FILES ${CMAKE_SOURCE_DIR}/compiler/target/KernelOptions.h ${CMAKE_SOURCE_DIR}/compiler/target/KernelOptions.def
        DESTINATION ${headers}/compiler/target)
install(FILES ${CMAKE_SOURCE_DIR}/runtime/jit/Knobs.def DESTINATION ${headers}/runtime/jit)

set(KILN_PACKAGE_PLUGINS OFF)
if(TARGET kiln-compiler AND TARGET kiln-opt)
  # The helper lies where the compiler looks for it: next to libkiln-compiler.
  kiln_install_target(kiln-compiler LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  kiln_install_target(kiln-compile-helper RUNTIME DESTINATION ${CMAKE_INSTALL_LIBDIR})
  kiln_install_target(kiln-opt RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  set_target_properties(kiln-opt PROPERTIES INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")
  if(NOT KILN_STATIC_LLVM)
    set(KILN_PACKAGE_PLUGINS ON)
    foreach(name LLVM_LIBRARY_DIR LLVM_PACKAGE_VERSION MLIR_DIR)
      get_directory_property(${name} DIRECTORY ${CMAKE_SOURCE_DIR}/compiler DEFINITION ${name})
    endforeach()
    set_target_properties(kiln-compiler PROPERTIES INSTALL_RPATH "${LLVM_LIBRARY_DIR}")
    foreach(tool kiln-reduce kiln-lsp-server)
      if(TARGET ${tool})
        kiln_install_target(${tool} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
        set_target_properties(${tool} PROPERTIES INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}:${LLVM_LIBRARY_DIR}")
      endif()
    endforeach()
    # What a pass includes: dialects, layouts, targets, analyses, and what tablegen made of them.
    kiln_install_headers(compiler/target compiler/layout compiler/tile compiler/tile_gpu compiler/analysis compiler/passes)
    foreach(folder tile tile_gpu passes)
      install(DIRECTORY ${CMAKE_BINARY_DIR}/compiler/${folder} DESTINATION ${headers}/compiler
              FILES_MATCHING PATTERN "*.inc" PATTERN "*.cpp.inc" EXCLUDE PATTERN "*.md.inc" EXCLUDE PATTERN "CMakeFiles" EXCLUDE)
    endforeach()
    install(FILES ${CMAKE_SOURCE_DIR}/compiler/pipeline/Stages.h ${CMAKE_BINARY_DIR}/compiler/pipeline/PassPluginAbi.inc
            DESTINATION ${headers}/compiler/pipeline)
    configure_file(${CMAKE_SOURCE_DIR}/cmake/KilnPassPlugin.cmake.in ${CMAKE_BINARY_DIR}/KilnPassPlugin.cmake @ONLY)
    install(FILES ${CMAKE_BINARY_DIR}/KilnPassPlugin.cmake ${CMAKE_SOURCE_DIR}/compiler/pipeline/PassPluginMark.cpp
            DESTINATION ${package})
  endif()
endif()

configure_package_config_file(${CMAKE_SOURCE_DIR}/cmake/KilnConfig.cmake.in ${CMAKE_BINARY_DIR}/KilnConfig.cmake
  INSTALL_DESTINATION ${package} PATH_VARS CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_INCLUDEDIR)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/KilnConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/KilnConfig.cmake ${CMAKE_BINARY_DIR}/KilnConfigVersion.cmake DESTINATION ${package})
