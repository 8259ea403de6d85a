//===- MemoryInterfaces.td - What an operation does to memory ---------------===//
//
// Two interfaces, implemented by each operation that touches or orders memory, and by nothing else: barriers, their
// proof, allocation, access widths and reports read them (MemoryInterfaces.h), and name no operation.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_TILE_MEMORY_INTERFACES
#define KILN_TILE_MEMORY_INTERFACES

include "mlir/IR/Interfaces.td"

def Tile_AccessOpInterface : OpInterface<"AccessOpInterface"> {
  let description = [{
    What the operation accesses.  Its memory effects say the same by value (`Arg<.., [MemRead<..>]>`): the verifier
    compares.
  }];
  let cppNamespace = "::kiln::tile";
  let methods = [InterfaceMethod<"Every access, in the order in which they take effect.", "::kiln::tile::MemoryAccesses",
                                 "accesses">];
  let verify = [{ return ::kiln::tile::detail::verifyAccesses($_op); }];
}

def Tile_OrderOpInterface : OpInterface<"OrderOpInterface"> {
  let description = [{
    What the operation orders: threads that wait for each other, groups of accesses in flight that it closes or waits
    for.  Effects of such an operation on memory that name no value keep accesses in their places, and are none.
  }];
  let cppNamespace = "::kiln::tile";
  let methods = [
    InterfaceMethod<"Who meets, and which groups are closed or waited for.", "::kiln::tile::MemoryOrdering",
                    "ordering">,
    InterfaceMethod<"Of a wait: how many of the last groups may still be in flight, as count-groups found.", "void",
                    "leaveInFlight", (ins "unsigned":$groups), "", [{ (void)groups; }]>
  ];
}

#endif // KILN_TILE_MEMORY_INTERFACES
