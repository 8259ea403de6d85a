//===- LocalOps.td - Shared memory ------------------------------------------===//
#ifndef KILN_TILE_GPU_LOCAL_OPS
#define KILN_TILE_GPU_LOCAL_OPS

include "compiler/tile_gpu/TileGpuDialect.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

/// Shared memory as ordinary loads and stores see it.
def TileGpu_SharedMemory : Resource<"::kiln::tile_gpu::SharedMemory">;

def TileGpu_Buffer : TypeDef<TileGpu_Dialect, "Buffer"> {
  let mnemonic = "buffer";
  let summary = "A tile in a block's memory";
  let description = [{
    `!tile_gpu.buffer<64x32xf16, #tile_gpu.swizzled<vec=8, perPhase=1, maxPhase=4>>`; with a leading count in brackets,
    so many of them one after the other: `!tile_gpu.buffer<[3] x 64x32xf16, #sh>`.

    `!tile_gpu.buffer<"k": [2] x 64x32xf16, #sh>` says what flows through: the name of the argument that the tiles come
    from.  Buffers of different names have different types, so that one cannot go where the other is expected, and
    kiln-verify-stage refuses copies of another argument's tiles into them.

    `!tile_gpu.buffer<64x32xf32, #sh, tensor>` lies in tensor memory instead of shared memory; no operation takes one
    yet.
  }];
  let parameters = (ins "int64_t":$count, ArrayRefParameter<"int64_t">:$shape, "::mlir::Type":$elementType,
                        "::mlir::Attribute":$layout, StringRefParameter<"what flows through it, or nothing">:$name,
                        AttrOrTypeParameter<"::kiln::tile_gpu::Space", "the memory that it lies in">:$space);
  let builders = [TypeBuilder<(ins "int64_t":$count, "::llvm::ArrayRef<int64_t>":$shape, "::mlir::Type":$elementType,
                                   "::mlir::Attribute":$layout, CArg<"::llvm::StringRef", "\"\"">:$name),
                              [{ return $_get($_ctxt, count, shape, elementType, layout, name, Space::Shared); }]>];
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// One of the buffers, lowered.
    ::kiln::Result<::kiln::layout::SharedTile> lowered() const;
    /// Bytes of all of them, each aligned as its layout demands.
    ::kiln::Result<uint64_t> bytes() const;
    /// So many of the same.
    BufferType withCount(int64_t count) const;
  }];
}

def TileGpu_SharedBuffer : Type<
    CPred<"::llvm::isa<::kiln::tile_gpu::BufferType>($_self) && "
          "::llvm::cast<::kiln::tile_gpu::BufferType>($_self).getSpace() == ::kiln::tile_gpu::Space::Shared">,
    "A tile in shared memory", "::kiln::tile_gpu::BufferType">;

/// Operands by what the operation does to them.
class TileGpu_ReadFrom<TypeConstraint type> : Arg<type, "", [MemRead<TileGpu_SharedMemory>]>;
class TileGpu_WrittenTo<TypeConstraint type> : Arg<type, "", [MemWrite<TileGpu_SharedMemory>]>;

def TileGpu_Scratch : TypeDef<TileGpu_Dialect, "Scratch"> {
  let mnemonic = "scratch";
  let summary = "Bytes of shared memory that a conversion plan lays out";
  let description = [{ `!tile_gpu.scratch<4096>`: 4096 bytes. }];
  let parameters = (ins "int64_t":$bytes);
  let assemblyFormat = "`<` $bytes `>`";
}

def TileGpu_Mbarriers : TypeDef<TileGpu_Dialect, "Mbarriers"> {
  let mnemonic = "mbarriers";
  let summary = "Barriers in shared memory";
  let description = [{ `!tile_gpu.mbarriers<3>`: three mbarriers, of 8 bytes each. }];
  let parameters = (ins "int64_t":$count);
  let assemblyFormat = "`<` $count `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    static constexpr unsigned bytesOfOne = 8;
  }];
}

def TileGpu_LocalAllocOp : TileGpu_Op<"local_alloc"> {
  let summary = "A buffer in shared memory; its contents are undefined";
  let description = [{
    ```mlir
    %b = tile_gpu.local_alloc : !tile_gpu.buffer<64x32xf16, #sh>
    %s = tile_gpu.local_alloc {offset = 1024 : i32} : !tile_gpu.scratch<4096>
    ```
    Alive from here to the last use.  `offset` (bytes from the start of the kernel's shared memory) is filled in by
    allocate-shared.  `alone`: no other buffer has any of its bytes, before or after.
  }];
  let arguments = (ins OptionalAttr<I32Attr>:$offset, UnitAttr:$alone);
  let results = (outs Res<AnyTypeOf<[TileGpu_SharedBuffer, TileGpu_Scratch, TileGpu_Mbarriers]>, "", [MemAlloc<TileGpu_SharedMemory>]>:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
}

def TileGpu_LocalStoreOp : TileGpu_Op<"local_store", [DeclareOpInterfaceMethods<Tile_AccessOpInterface>]> {
  let summary = "Writes a tile to its buffer";
  let description = [{
    ```mlir
    tile_gpu.local_store %x, %b : tensor<64x32xf16, #row>, !tile_gpu.buffer<64x32xf16, #sh>
    ```
    Replicated elements are written by one owner.
  }];
  let arguments = (ins Tile_NumberTile:$value, TileGpu_WrittenTo<TileGpu_SharedBuffer>:$buffer);
  let assemblyFormat = "$value `,` $buffer attr-dict `:` type($value) `,` qualified(type($buffer))";
  let hasVerifier = 1;
}

def TileGpu_LocalLoadOp : TileGpu_Op<"local_load", [DeclareOpInterfaceMethods<Tile_AccessOpInterface>]> {
  let summary = "Reads a tile from its buffer";
  let description = [{
    ```mlir
    %x = tile_gpu.local_load %b : !tile_gpu.buffer<64x32xf16, #sh> to tensor<64x32xf16, #row>
    ```
  }];
  let arguments = (ins TileGpu_ReadFrom<TileGpu_SharedBuffer>:$buffer);
  let results = (outs Tile_NumberTile:$result);
  let assemblyFormat = "$buffer attr-dict `:` qualified(type($buffer)) `to` type($result)";
  let hasVerifier = 1;
}

def TileGpu_LocalScalarOp : TileGpu_Op<"local_scalar", [DeclareOpInterfaceMethods<Tile_AccessOpInterface>]> {
  let summary = "Reads the number in a buffer of one";
  let description = [{
    ```mlir
    %n = tile_gpu.local_scalar %b : !tile_gpu.buffer<1xi32, #one> to i32
    ```
    Every thread reads it; between two barriers of the block those of warps that only copy do, too.
  }];
  let arguments = (ins TileGpu_ReadFrom<TileGpu_SharedBuffer>:$buffer);
  let results = (outs AnyTypeOf<[AnySignlessInteger, AnyFloat]>:$result);
  let assemblyFormat = "$buffer attr-dict `:` qualified(type($buffer)) `to` type($result)";
  let hasVerifier = 1;
}

def TileGpu_LocalSubviewOp : TileGpu_Op<"local_subview", [Pure]> {
  let summary = "One of several equal buffers";
  let description = [{
    ```mlir
    %s = tile_gpu.local_subview %b[%i] : !tile_gpu.buffer<[3] x 64x32xf16, #sh>
    ```
    An index outside 0 .. count - 1 is undefined.
  }];
  let arguments = (ins TileGpu_Buffer:$buffer, I32:$index);
  let results = (outs TileGpu_Buffer:$result);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

def TileGpu_LocalTransposeOp : TileGpu_Op<"local_transpose", [Pure]> {
  let summary = "The same bytes seen with the dimensions in another order";
  let description = [{
    ```mlir
    %t = tile_gpu.local_transpose %b [1, 0] : !tile_gpu.buffer<64x32xf16, #sh> to !tile_gpu.buffer<32x64xf16, #column>
    ```
  }];
  let arguments = (ins TileGpu_Buffer:$buffer, DenseI64ArrayAttr:$perm);
  let results = (outs TileGpu_Buffer:$result);
  let assemblyFormat = "$buffer $perm attr-dict `:` qualified(type($buffer)) `to` qualified(type($result))";
  let hasVerifier = 1;
}

def TileGpu_ExchangeStoreOp : TileGpu_Op<"exchange_store", [DeclareOpInterfaceMethods<Tile_AccessOpInterface>]> {
  let summary = "First half of a layout conversion through shared memory";
  let description = [{
    ```mlir
    tile_gpu.exchange_store %x, %s {pass = 0 : i32} : tensor<64x32xf32, #a> to #b, !tile_gpu.scratch<4096>
    ```
    Writes what pass `pass` of the plan for #a -> #b carries, in a scratch of this size.  `tile_gpu.exchange_load` reads
    it, after a barrier.
  }];
  let arguments = (ins Tile_Tile:$value, TileGpu_WrittenTo<TileGpu_Scratch>:$scratch, AnyAttr:$destination,
                       I32Attr:$pass);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

def TileGpu_ExchangeLoadOp : TileGpu_Op<"exchange_load", [DeclareOpInterfaceMethods<Tile_AccessOpInterface>,
                                                          AllTypesMatch<["previous", "result"]>]> {
  let summary = "Second half of a layout conversion through shared memory";
  let description = [{
    ```mlir
    %y = tile_gpu.exchange_load %s, %y0 {pass = 0 : i32} : #a, !tile_gpu.scratch<4096> to tensor<64x32xf32, #b>
    ```
    Reads what `tile_gpu.exchange_store` wrote in the same pass; elements that the pass does not carry are those of %y0.
  }];
  let arguments = (ins TileGpu_ReadFrom<TileGpu_Scratch>:$scratch, Tile_Tile:$previous, AnyAttr:$origin,
                       I32Attr:$pass);
  let results = (outs Tile_Tile:$result);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

#endif // KILN_TILE_GPU_LOCAL_OPS
