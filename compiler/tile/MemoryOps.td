//===- MemoryOps.td - Global memory through pointers -----------------------===//
#ifndef KILN_TILE_MEMORY_OPS
#define KILN_TILE_MEMORY_OPS

include "compiler/tile/MemoryInterfaces.td"
include "compiler/tile/TileTypes.td"
include "mlir/IR/EnumAttr.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Tile_AddPtrOp : Tile_Op<"addptr", [Pure, Elementwise, AllTypesMatch<["pointer", "result"]>]> {
  let summary = "Pointer plus offset, in elements";
  let description = [{
    ```mlir
    %q = tile.addptr %p, %offsets : tensor<128x!tile.ptr<f32>>, tensor<128xi32>
    ```
    Offsets are signed.
  }];
  let arguments = (ins Tile_PtrLike:$pointer, Tile_IndexLike:$offset);
  let results = (outs Tile_PtrLike:$result);
  let assemblyFormat = "$pointer `,` $offset attr-dict `:` type($pointer) `,` type($offset)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Tile_Cache : I32EnumAttr<"Cache", "how long the caches should keep what is accessed",
    [I32EnumAttrCase<"Default", 0, "default">,
     I32EnumAttrCase<"Streaming", 1, "streaming">,   // used once
     I32EnumAttrCase<"Global", 2, "global">,         // L2 only
     I32EnumAttrCase<"Volatile", 3, "volatile">]> {  // every access goes to memory
  let cppNamespace = "::kiln::tile";
}

def Tile_LoadOp : Tile_Op<"load", [AttrSizedOperandSegments, DeclareOpInterfaceMethods<MemoryEffectsOpInterface>,
                                     DeclareOpInterfaceMethods<Tile_AccessOpInterface>]> {
  let summary = "Reads global memory where the mask holds";
  let description = [{
    ```mlir
    %x = tile.load %p : tensor<128x!tile.ptr<f32>>
    %y = tile.load %p mask %m : tensor<128x!tile.ptr<f32>>
    %z = tile.load %p mask %m other %o cache streaming : tensor<128x!tile.ptr<f32>>
    ```
    Where the mask is false nothing is read and the result is `other`, or zero.
  }];
  let arguments = (ins Tile_PtrLike:$pointer, Optional<Tile_MaskLike>:$mask, Optional<Tile_Any>:$other,
                       DefaultValuedAttr<Tile_Cache, "::kiln::tile::Cache::Default">:$cache);
  let results = (outs Tile_Any:$result);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let hasCanonicalizer = 1;
  let builders = [OpBuilder<(ins "::mlir::Value":$pointer, "::mlir::Value":$mask, "::mlir::Value":$other)>];
}

def Tile_StoreOp : Tile_Op<"store", [DeclareOpInterfaceMethods<Tile_AccessOpInterface>]> {
  let summary = "Writes global memory where the mask holds";
  let description = [{
    ```mlir
    tile.store %p, %v : tensor<128x!tile.ptr<f32>>
    tile.store %p, %v mask %m cache streaming : tensor<128x!tile.ptr<f32>>
    ```
    Two elements of one tile that go to the same address leave one of the two values.
  }];
  let arguments = (ins Arg<Tile_PtrLike, "", [MemWrite<Tile_GlobalMemory>]>:$pointer, Tile_Any:$value,
                       Optional<Tile_MaskLike>:$mask, DefaultValuedAttr<Tile_Cache, "::kiln::tile::Cache::Default">:$cache);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let hasCanonicalizer = 1;
}

def Tile_Rmw : I32EnumAttr<"Rmw", "an atomic operation",
    [I32EnumAttrCase<"Add", 0, "add">, I32EnumAttrCase<"Min", 1, "min">, I32EnumAttrCase<"Max", 2, "max">,
     I32EnumAttrCase<"UMin", 3, "umin">, I32EnumAttrCase<"UMax", 4, "umax">, I32EnumAttrCase<"And", 5, "and">,
     I32EnumAttrCase<"Or", 6, "or">, I32EnumAttrCase<"Xor", 7, "xor">, I32EnumAttrCase<"Exchange", 8, "xchg">]> {
  let cppNamespace = "::kiln::tile";
}
def Tile_Order : I32EnumAttr<"Order", "an order of memory operations",
    [I32EnumAttrCase<"Relaxed", 0, "relaxed">, I32EnumAttrCase<"Acquire", 1, "acquire">,
     I32EnumAttrCase<"Release", 2, "release">, I32EnumAttrCase<"AcqRel", 3, "acq_rel">]> {
  let cppNamespace = "::kiln::tile";
}
def Tile_Scope : I32EnumAttr<"Scope", "who sees an atomic operation in order",
    [I32EnumAttrCase<"Cta", 0, "cta">, I32EnumAttrCase<"Gpu", 1, "gpu">, I32EnumAttrCase<"Sys", 2, "sys">]> {
  let cppNamespace = "::kiln::tile";
}

def Tile_AtomicPtr : Arg<Tile_PtrLike, "", [MemRead<Tile_GlobalMemory>, MemWrite<Tile_GlobalMemory>]>;

def Tile_AtomicRmwOp : Tile_Op<"atomic_rmw",
    [AttrSizedOperandSegments, DeclareOpInterfaceMethods<Tile_AccessOpInterface>]> {
  let summary = "Atomic read, operation, write; gives the old values";
  let description = [{
    ```mlir
    %old = tile.atomic_rmw add relaxed gpu %p, %v : tensor<128x!tile.ptr<f32>>
    %old = tile.atomic_rmw umax acq_rel sys %p, %v mask %m : !tile.ptr<i32>
    ```
    `add` takes floating-point types too, `min` and `max` signed integers and floating-point types.  Where the mask is
    false nothing happens and the result is zero.  Each element acts once.

    ```mlir
    %old = tile.atomic_rmw add relaxed gpu %p, %v mask %m after %n of %counter : tensor<128x!tile.ptr<f32>>
    ```
    Programs act one after the other, so that sums of floating-point numbers have one order: this one once `counter`, an
    i32 in global memory that begins at 0, is `n`; then it adds 1 to the counter.  A negative `n`: at once, and the
    counter stays.  The operation orders nothing else than what programs do to these elements.  It waits, with all
    threads: programs must not wait for one that starts later.  Relaxed, of the whole GPU, without a result.
  }];
  let arguments = (ins Tile_Rmw:$kind, Tile_Order:$order, Tile_Scope:$scope, Tile_AtomicPtr:$pointer, Tile_Any:$value,
                       Optional<Tile_MaskLike>:$mask,
                       Arg<Optional<Tile_Ptr>, "", [MemRead<Tile_GlobalMemory>, MemWrite<Tile_GlobalMemory>]>:$counter,
                       Optional<I32>:$before);
  let results = (outs Tile_Any:$result);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

def Tile_AtomicCasOp : Tile_Op<"atomic_cas", [DeclareOpInterfaceMethods<Tile_AccessOpInterface>]> {
  let summary = "Atomic compare and swap; gives the old values";
  let description = [{
    ```mlir
    %old = tile.atomic_cas acq_rel gpu %p, %expected, %desired : !tile.ptr<i32>
    ```
    Integers of 16, 32 or 64 bits and floating-point types of those sizes, compared bit by bit.
  }];
  let arguments = (ins Tile_Order:$order, Tile_Scope:$scope, Tile_AtomicPtr:$pointer, Tile_Any:$expected,
                       Tile_Any:$desired);
  let results = (outs Tile_Any:$result);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

def Tile_GatherOp : Tile_Op<"gather", [Pure]> {
  let summary = "Elements of a tile picked along one dimension";
  let description = [{
    ```mlir
    %g = tile.gather %x[%i] {axis = 1 : i32} : tensor<64x32xf32>, tensor<64x16xi32>
    ```
    result[a, b] = x[a, i[a, b]] for axis 1; the other extents are equal.  An index outside the tile yields some element.
  }];
  let arguments = (ins Tile_NumberTile:$source, Tile_IndexTile:$indices, I32Attr:$axis);
  let results = (outs Tile_NumberTile:$result);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

#endif // KILN_TILE_MEMORY_OPS
