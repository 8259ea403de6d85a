//===- TensorMaps.td - Parameters that describe a tensor to the copy engine --===//
#ifndef KILN_TILE_GPU_TENSOR_MAPS
#define KILN_TILE_GPU_TENSOR_MAPS

include "compiler/tile_gpu/TileGpuDialect.td"

def TileGpu_HiddenArgument : NativeTypeTrait<"HiddenArgument"> { let cppNamespace = "::kiln::tile"; }

def TileGpu_TensorMap : TypeDef<TileGpu_Dialect, "TensorMap", [TileGpu_HiddenArgument]> {
  let mnemonic = "tensor_map";
  let summary = "A tensor map that the launcher makes";
  let description = [{
    Only the type of a kernel's arguments, after those that a caller passes.  Each has the attribute
    `tile_gpu.tensor_map`, its recipe, and becomes a parameter `.param .align 64 .b8 name[128]`: in the kernel a
    generic pointer to the map.
  }];
}

def TileGpu_TensorMapRecipe : AttrDef<TileGpu_Dialect, "TensorMapRecipe"> {
  let mnemonic = "tensor_map";
  let summary = "How the launcher makes a tensor map of the kernel's arguments";
  let description = [{
    A host view: its address is a pointer argument, its extents and strides are expressions over arguments.  Symbol `sN`
    stands for the kernel's argument number N, an integer.

    ```mlir
    func.func @k(%x: !tile.ptr<bf16>, %rows: i32, %columns: i32, %row_stride: i64, %map: !tile_gpu.tensor_map {
        tile_gpu.tensor_map = #tile_gpu.tensor_map<
          element = "bf16", address = 0, extents = ()[s0, s1, s2] -> (s2, s1),
          strides = ()[s0, s1, s2, s3] -> (s3 * 2), box = [64, 128], swizzle = "128B">})
    ```

    | field | meaning |
    |---|---|
    | `element` | `u8` `u16` `u32` `s32` `u64` `s64` `f16` `bf16` `f32` `f64` `f32_ftz` `tf32` `tf32_ftz` |
    | `address` | the argument that points to the first element |
    | `extents` | elements, the contiguous dimension first; 1 to 5 of them |
    | `strides` | bytes from one to the next of the second dimension, the third, ..: one less than `extents` |
    | `box` | elements that one instruction copies |
    | `elementStrides` | every so-manieth element of the box; ones if absent |
    | `swizzle` | `none` (if absent) `32B` `64B` `128B` `128B_atom_32B` `128B_atom_32B_flip_8B` `128B_atom_64B` |
    | `interleave` | `none` (if absent) `16B` `32B` |
    | `promotion` | of what is read into the L2 cache: `none` (if absent) `64B` `128B` `256B` |
    | `fill` | what elements outside read as: `zeros` (if absent) `nan` |

    The hardware's rules (`compiler/target/TensorMap.h`): those that need no argument's value are checked here, the
    others at each launch that makes a new map.
  }];
  let parameters = (ins StringRefParameter<"type of an element">:$element, "unsigned":$address,
                        "::mlir::AffineMap":$extents, "::mlir::AffineMap":$strides, "::mlir::DenseI64ArrayAttr":$box,
                        OptionalParameter<"::mlir::DenseI64ArrayAttr">:$elementStrides,
                        StringRefParameter<"", [{"none"}]>:$swizzle, StringRefParameter<"", [{"none"}]>:$interleave,
                        StringRefParameter<"", [{"none"}]>:$promotion, StringRefParameter<"", [{"zeros"}]>:$fill);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Everything but the address, the extents and the strides.
    ::kiln::Result<::kiln::TensorMapRecipe> form() const;
    /// The arguments whose values it reads, the pointer's aside.
    ::llvm::SmallVector<unsigned> arguments() const;
  }];
}

#endif // KILN_TILE_GPU_TENSOR_MAPS
