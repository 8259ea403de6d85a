//===- PipelineOps.td - Tiles that flow through slots of shared memory ------===//
//
// A pipeline is a ring of slots with two ends.  The producer acquires a slot, copies into it and commits; the consumer
// waits for the oldest slot that was committed, reads it and releases it.  Which slot is whose turn nobody writes: a
// value of the pipeline's type is its state, and every operation gives the next one.  What the copies are made of, how
// a wait learns that they are there and how a slot is known to be free is lower-pipelines' choice.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_TILE_GPU_PIPELINE_OPS
#define KILN_TILE_GPU_PIPELINE_OPS

include "compiler/tile_gpu/LocalOps.td"
include "mlir/Interfaces/InferTypeOpInterface.td"

def TileGpu_Pipeline : TypeDef<TileGpu_Dialect, "Pipeline"> {
  let mnemonic = "pipeline";
  let summary = "The state of a ring of slots in shared memory";
  let description = [{
    `!tile_gpu.pipeline<3, !tile_gpu.buffer<"k": 64x32xf16, #sh>, !tile_gpu.buffer<"v": 64x32xf16, #sh>>`: three slots,
    each with a tile of k and one of v, which are copied, waited for and released together (a kernel with one:
    `docs/examples/ring.mlir`).  Tiles that are waited for
    at different places flow through pipelines of their own.

    A state is used once: by the operation that gives the next one, by a loop that carries it, or by the end of a loop
    or a conditional.  The names are part of the type: a pipeline of k cannot go where one of v is expected.
  }];
  let parameters = (ins "int64_t":$stages, ArrayRefParameter<"::kiln::tile_gpu::BufferType", "a slot's">:$buffers);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

/// Whose turn each slot is.
def TileGpu_PipelineState : Resource<"::kiln::tile_gpu::PipelineState">;

class TileGpu_PipelineOpLike<string mnemonic, list<Trait> traits = []>
    : TileGpu_Op<mnemonic, !listconcat(traits, [MemoryEffects<[MemWrite<TileGpu_PipelineState>]>])>;

def TileGpu_PipelineOp : TileGpu_PipelineOpLike<"pipeline"> {
  let summary = "A pipeline whose slots are all free, or all but the first few";
  let description = [{
    ```mlir
    %p = tile_gpu.pipeline : !tile_gpu.pipeline<3, !tile_gpu.buffer<64x32xf16, #sh>>
    %q = tile_gpu.pipeline holding 2 : !tile_gpu.pipeline<4, !tile_gpu.buffer<64x32xf16, #sh>>
    %b = tile_gpu.pipeline bulk : !tile_gpu.pipeline<4, !tile_gpu.buffer<64x64xf16, #tma>>
    ```
    `holding`: so many slots count as waited for, with nothing in them, until they are released.  A loop whose rounds
    keep slots of earlier rounds begins so.  `bulk`: its slots are filled by `tile_gpu.tensor_copy`.
  }];
  let arguments = (ins UnitAttr:$bulk, DefaultValuedAttr<I32Attr, "0">:$holding);
  let results = (outs TileGpu_Pipeline:$state);
  let assemblyFormat = "(`bulk` $bulk^)? (`holding` $holding^)? attr-dict `:` qualified(type($state))";
  let hasVerifier = 1;
}

/// Gives the next state and the buffers of a slot.
class TileGpu_SlotOpLike<string mnemonic>
    : TileGpu_PipelineOpLike<mnemonic, [DeclareOpInterfaceMethods<InferTypeOpInterface>]> {
  let arguments = (ins TileGpu_Pipeline:$pipeline);
  let results = (outs TileGpu_Pipeline:$next, Variadic<TileGpu_SharedBuffer>:$buffers);
  let assemblyFormat = "$pipeline attr-dict `:` qualified(type($pipeline))";
}

/// Gives the next state.
class TileGpu_StepOpLike<string mnemonic> : TileGpu_PipelineOpLike<mnemonic, [SameOperandsAndResultType]> {
  let arguments = (ins TileGpu_Pipeline:$pipeline);
  let results = (outs TileGpu_Pipeline:$next);
  let assemblyFormat = "$pipeline attr-dict `:` qualified(type($pipeline))";
}

def TileGpu_AcquireOp : TileGpu_SlotOpLike<"acquire"> {
  let summary = "The next slot to be filled, once it is free";
  let description = [{
    ```mlir
    %q, %b = tile_gpu.acquire %p : !tile_gpu.pipeline<3, !tile_gpu.buffer<64x32xf16, #sh>>
    ```
    It is this slot that copies fill until the next `tile_gpu.commit`.
  }];
}

def TileGpu_CommitOp : TileGpu_StepOpLike<"commit"> {
  let summary = "What was copied into the acquired slot is all that it gets";
  let description = [{
    ```mlir
    %r = tile_gpu.commit %q : !tile_gpu.pipeline<3, !tile_gpu.buffer<64x32xf16, #sh>>
    ```
    The copies may be in flight still.  A slot may be committed without any: its contents are then what they were.
  }];
}

def TileGpu_WaitOp : TileGpu_SlotOpLike<"wait"> {
  let summary = "The oldest committed slot, once all threads may read it";
  let description = [{
    ```mlir
    %q, %b = tile_gpu.wait %p : !tile_gpu.pipeline<3, !tile_gpu.buffer<64x32xf16, #sh>>
    ```
    Several slots may be waited for before the first is released.
  }];
}

def TileGpu_ReleaseOp : TileGpu_StepOpLike<"release"> {
  let summary = "The oldest slot that was waited for is read no more";
  let description = [{
    ```mlir
    %r = tile_gpu.release %q : !tile_gpu.pipeline<3, !tile_gpu.buffer<64x32xf16, #sh>>
    ```
  }];
}

def TileGpu_SlotsOp : TileGpu_Op<"slots", [MemoryEffects<[MemRead<TileGpu_PipelineState>]>,
                                           DeclareOpInterfaceMethods<InferTypeOpInterface>]> {
  let summary = "The buffers of the oldest slot that was waited for, or of a slot by its number";
  let description = [{
    ```mlir
    %b = tile_gpu.slots %p : !tile_gpu.pipeline<3, !tile_gpu.buffer<64x32xf16, #sh>>
    %c = tile_gpu.slots %p at %n : !tile_gpu.pipeline<3, !tile_gpu.buffer<64x32xf16, #sh>>
    ```
    The state goes on to somewhere else: this only looks.  Slots are filled in the order of their numbers; an
    index outside 0 .. stages - 1 is undefined.
  }];
  let arguments = (ins TileGpu_Pipeline:$pipeline, Optional<I32>:$index);
  let results = (outs Variadic<TileGpu_SharedBuffer>:$buffers);
  let assemblyFormat = "$pipeline (`at` $index^)? attr-dict `:` qualified(type($pipeline))";
}

def TileGpu_DrainOp : TileGpu_PipelineOpLike<"drain"> {
  let summary = "Ends a pipeline: nothing that was copied into it is in flight any more";
  let description = [{
    ```mlir
    tile_gpu.drain %p : !tile_gpu.pipeline<3, !tile_gpu.buffer<64x32xf16, #sh>>
    ```
    Every pipeline is ended.
  }];
  let arguments = (ins TileGpu_Pipeline:$pipeline);
  let assemblyFormat = "$pipeline attr-dict `:` qualified(type($pipeline))";
}

#endif // KILN_TILE_GPU_PIPELINE_OPS
