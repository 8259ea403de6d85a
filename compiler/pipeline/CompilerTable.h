/*===- CompilerTable.h - The C entry of libkiln-compiler --------------------===//
//
// Everything that includes MLIR or LLVM is one shared object, libkiln-compiler.so.  It exports one function,
// kilnCompilerTable(), and is opened with dlopen when the first kernel must be compiled, not before.  Plain C, so that
// it may hold a C++ library and an LLVM of its own.
//
// Text, target and options go in; PTX (or the text of an earlier stage), metadata and diagnostics come out.  No call
// throws, aborts or ends the process; calls from several threads at once are allowed.  Texts need not end in a zero.
//
//===----------------------------------------------------------------------===*/
#ifndef KILN_PIPELINE_COMPILERTABLE_H
#define KILN_PIPELINE_COMPILERTABLE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Raised by every change of the structures below. */
#define KILN_COMPILER_ABI 1u

typedef struct KilnText {
  const char *data;
  size_t size;
} KilnText;

typedef struct KilnCompileRequest {
  KilnText program;    /* MLIR text (or bytecode) of one module, at stage tile, tile_gpu or llvm */
  KilnText fileName;   /* names the text in messages; may be empty */
  KilnText kernel;     /* which kernel of the module; empty: the only one */
  KilnText codeTarget; /* "sm_80": what the code may use */
  /* JSON: what the launcher knows of the arguments, and guards:
   *   [{"argument": 0, "divisibility": 16}, {"argument": 4, "equals": 1}] ; empty: nothing.
   * {"tensor_maps": false} in it: passes make no tensor maps; those in the program stay. */
  KilnText specialization;
  /* JSON object of knobs.  Known: "emit": "tile" | "tile_gpu" | "llvm" | "ptx" (default);
   *   "line_info": bool (false); "explain": bool (false); "plugins": ["/path/p.so"], pass plugins, loaded into
   *   a helper process (into this one only with isolation "none"); "passes": "tile=my-pass,cse; tile_gpu=other", which
   *   passes are added where; "stress": "SEED" | "WARP:HANDOFF", which warps are made late; "dump_dir": "/path" (each
   * stage's text; empty: none); "dump_passes": bool (the text after every pass, there too); "time_passes": bool (the
   * metadata has "passes"; compiled in a helper process); "overrides": {"add.sm_80.1f3a5c70.tile_gpu.mlir": "text"},
   * what takes the place of a stage's output, by the name of its dump; "deadline": seconds that a helper process may
   * take (300); "isolation": "thread" (default) | "none" | "child".  An unknown knob is an error. */
  KilnText options;
} KilnCompileRequest;

/* Status of a compile: also kiln's exit statuses. */
enum {
  KILN_COMPILE_OK = 0,
  KILN_COMPILE_INPUT = 2,       /* the request is wrong: malformed text, unknown target, kernel or option */
  KILN_COMPILE_REFUSED = 3,     /* the program cannot be compiled for this target */
  KILN_COMPILE_NOT_STARTED = 4, /* the system gave neither a thread nor a process to compile in */
  KILN_COMPILE_CRASHED = 5      /* the compiler failed and was contained; diagnostics name a reproducer */
};

typedef struct KilnCompileResult {
  int32_t status;
  KilnText output; /* PTX, or the text of the stage asked for */
  /* JSON object, only if status is 0 and emit is "ptx", or "tile" (then without what later stages find out):
   *   {"kernel": "add", "entry": "add", "target": "sm_80", "ptx_isa": "7.0", "num_warps": 4, "shared_bytes": 0,
   *    "assembler_level": 3, "reproducible": true,
   *    "arguments": [{"name": "x", "type": "ptr<f32>", "offset": 0, "bytes": 8}, ..],   types: ptr<T>, i1 i8 .. f64
   *                   where the program says so: "specialize": "none" | "divisibility" | "stride" | "value", and
   *                   "element_bytes": 2, of one element that the argument counts
   *    "hidden": [{"kind": "tensor_map", "offset": 64, "bytes": 128, "element": "bf16", "address": 0,
   *                "extents": [{"argument": 2}, {"argument": 1}], "strides": [["*", {"argument": 3}, 2]],
   *                "box": [64, 64], "swizzle": "128B", "interleave": "none", "promotion": "none",
   *                "fill": "zeros"}, ..],   parameters after the arguments that the launcher makes of them, if any;
   *                   expressions as ArgumentExpression.h says; "element_strides" too where they are not 1
   *    "maps_by_passes": true,    passes made some of these maps: {"tensor_maps": false} gives code that has fewer
   *    "cluster": [2, 1, 1],      blocks of a cluster, of which a launch's grid is a multiple; absent: none
   *    "guards": [{"argument": 0, "divisibility": 16}, ..],      facts the code relies on
   *    "milliseconds": {"parse": 0.1, "tile": .., "tile_gpu": .., "lowering": .., "llvm": .., "ptx": ..},
   *    "passes": [{"stage": "tile_gpu", "pass": "kiln-assign-layouts", "milliseconds": 0.2}, ..],   only if asked for
   *    "explain": {..}}      only if asked for: layouts, accesses, conversions, shared memory, barriers
   * (KernelReport.h) */
  KilnText metadata;
  /* JSON array of {"severity": "error" | "warning" | "remark", "file", "line", "column", "message", "remedy"} */
  KilnText diagnostics;
  void *owner; /* private */
} KilnCompileResult;

typedef struct KilnCompilerTable {
  uint32_t abi; /* KILN_COMPILER_ABI; check it before anything else */
  /* "kiln 0.1.0, LLVM 22.1.8"; enters every cache key together with the library's content hash */
  const char *version;
  /* Never null; free it with `release`. */
  KilnCompileResult *(*compile)(const KilnCompileRequest *request);
  void (*release)(KilnCompileResult *result);
  /* kiln-opt's main: every pass and stage, with MLIR's own options. */
  int (*optMain)(int argc, char **argv);
} KilnCompilerTable;

const KilnCompilerTable *kilnCompilerTable(void);

#ifdef __cplusplus
}
#endif

#endif /* KILN_PIPELINE_COMPILERTABLE_H */
