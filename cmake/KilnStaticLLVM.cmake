# kiln-mlir-link from the archives: one LLVM, hidden inside libkiln-compiler.  MLIR's archives name the shared LLVM as what
# they depend on; that name is replaced by LLVM's own archives, and z3 (which LLVMSupport names, and nothing here uses) goes.
add_library(kiln-llvm-static INTERFACE)
target_link_libraries(kiln-llvm-static INTERFACE
  LLVMNVPTXCodeGen LLVMNVPTXDesc LLVMNVPTXInfo LLVMPasses LLVMCore LLVMSupport LLVMBitReader LLVMBitWriter LLVMIRReader
  LLVMAsmParser LLVMLinker LLVMTransformUtils LLVMFrontendOpenMP LLVMFrontendAtomic)
get_target_property(libraries LLVMSupport INTERFACE_LINK_LIBRARIES)
list(FILTER libraries EXCLUDE REGEX libz3)
set_property(TARGET LLVMSupport PROPERTY INTERFACE_LINK_LIBRARIES "${libraries}")
foreach(target ${MLIR_EXPORTED_TARGETS})
  if(TARGET ${target})
    get_target_property(type ${target} TYPE)
    get_target_property(libraries ${target} INTERFACE_LINK_LIBRARIES)
    if(type STREQUAL STATIC_LIBRARY AND libraries)
      list(TRANSFORM libraries REPLACE "^LLVM$" kiln-llvm-static)
      set_property(TARGET ${target} PROPERTY INTERFACE_LINK_LIBRARIES "${libraries}")
    endif()
  endif()
endforeach()

target_link_libraries(kiln-mlir-link INTERFACE
  MLIRIR MLIRParser MLIRPass MLIRTransforms MLIRTransformUtils MLIRAnalysis MLIRArithDialect MLIRArithUtils MLIRMathDialect
  MLIRSCFDialect MLIRSCFTransforms MLIRSCFUtils MLIRControlFlowDialect MLIRFuncDialect MLIRFuncInlinerExtension
  MLIRFuncTransforms MLIRLLVMDialect MLIRNVVMDialect MLIRUBDialect MLIRArithToLLVM MLIRMathToLLVM MLIRSCFToControlFlow
  MLIRControlFlowToLLVM MLIRFuncToLLVM MLIRUBToLLVM MLIRReconcileUnrealizedCasts MLIRNVVMToLLVM MLIRLLVMCommonConversion
  MLIRTargetLLVMIRExport MLIRBuiltinToLLVMIRTranslation MLIRLLVMToLLVMIRTranslation MLIRNVVMToLLVMIRTranslation
  MLIROptLib MLIRDebug kiln-llvm-static)
target_link_options(kiln-mlir-link INTERFACE
  -Wl,--gc-sections -Wl,--icf=all -Wl,--version-script=${CMAKE_CURRENT_LIST_DIR}/KilnCompiler.map)
