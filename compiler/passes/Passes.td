//===- Passes.td - Every pass of Kiln ----------------------------------------===//
//
// One record here, one .cpp, one .mlir test with accepted and one with rejected input: that is a pass.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_PASSES
#define KILN_PASSES

include "mlir/Pass/PassBase.td"

//===----------------------------------------------------------------------===//
// tile
//===----------------------------------------------------------------------===//

def Specialize : Pass<"kiln-specialize", "::mlir::ModuleOp"> {
  let summary = "Picks the kernel, names the target, states what is known of the arguments";
  let description = [{
    Removes every other kernel, sets `tile_gpu.target`, gives divisible arguments `tile.divisibility` and puts constants
    in the place of arguments whose value is known (they stay arguments, with `tile.equals`).  What is stated here
    becomes the guards of the compiled kernel.  `no-tensor-maps` gives the kernel `tile_gpu.no_tensor_maps`, which is no
    guard: code without maps takes all arguments.
  }];
  let options = [
    Option<"target", "target", "std::string", /*default=*/"", "code target, such as sm_80">,
    Option<"kernel", "kernel", "std::string", /*default=*/"", "kernel to keep; empty: the only one">,
    ListOption<"divisible", "divisible", "std::string", "ARGUMENT=DIVISOR, as in 0=16">,
    ListOption<"equals", "equals", "std::string", "ARGUMENT=VALUE, as in 4=1">,
    Option<"noTensorMaps", "no-tensor-maps", "bool", /*default=*/"false",
           "passes make no tensor maps for the kernel; those in its text stay">];
  let dependentDialects = ["::kiln::tile_gpu::TileGpuDialect", "::mlir::arith::ArithDialect"];
}

def UnrollLoops : Pass<"kiln-unroll-loops", "::mlir::ModuleOp"> {
  let summary = "Repeats the bodies of loops with tile.unroll";
  let description = [{
    An scf.for with `tile.unroll` = n becomes a loop that does n rounds at once, by n copies of the body, as long as n
    rounds are left, and a loop for the rest, which is not pipelined.  Inner loops come first.  Where the bounds are
    constants, a loop of one round is no loop: n rounds or fewer become straight code.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

//===----------------------------------------------------------------------===//
// tile -> tile_gpu
//===----------------------------------------------------------------------===//

def AccelerateDot : Pass<"kiln-accelerate-dot", "::mlir::ModuleOp"> {
  let summary = "Chooses the unit that computes each tile.dot, and how warps share it";
  let description = [{
    Products that the target's matrix instructions take get an `mma` layout, the others a `blocked` one, which means
    multiply-adds of each thread.  Warps stand along M where the result goes into another product, so that its rows stay
    in one warp; else the result is shared out as squarely as possible.  Operands of types that the matrix unit lacks
    become wider ones that hold every value of theirs.  Multiply-adds whose operands no thread's registers hold become a
    loop over parts of K, which are read from shared memory.  Computed operands of tf32 products are rounded before the
    first product of a block that reads them, once for all.

    A product of 8-bit floats that follows from another product gets K in the order in which accumulators hold it, in
    both operands, by reshapes and a transposition: then nothing moves between threads for the left one.

    On targets with wgmma, products of 64 rows and more of f16, bf16, tf32 or 8-bit floats get an `mma` layout of
    version 3: whole warpgroups compute them and read both operands from shared memory, so that these may have any
    layout.  Exceptions, which mma.sync computes: products in loops with stages, unless all products of the loop
    multiply tiles of 16 or 8 bits that it loads and that can be copied (kiln-pipeline-loops); what has no 16 bits with
    K not innermost in both operands, but for the 8-bit products above, whose right tiles threads turn; all products
    of a kernel in which a tile of one of them takes more than an eighth of a thread's registers, or, where the operands
    are copied, the sums more than half.  The layouts are stated by conversions around the dot, one side of them open;
    kiln-assign-layouts takes them as given.  A dot with layouts stays as it is.
  }];
  let dependentDialects = ["::kiln::tile_gpu::TileGpuDialect", "::mlir::arith::ArithDialect",
                           "::mlir::math::MathDialect", "::mlir::scf::SCFDialect"];
}

def AssignLayouts : Pass<"kiln-assign-layouts", "::mlir::ModuleOp"> {
  let summary = "Gives every tile a layout";
  let description = [{
    Layouts of memory operations follow from what is known of their addresses (contiguity, divisibility, constancy):
    full-width, coalesced accesses.  All other tiles take the layout of what they meet; where two layouts meet, a
    `tile_gpu.convert_layout` stands between.  A layout that the author wrote is an anchor and stays; conversions to
    one and back to a tile without spread it, before and after.  A remark says which accesses are narrow because too
    little is known of an argument.  In tiles that are scanned a thread holds neighbours along the scan, as many as
    leave accesses as wide.
  }];
  let dependentDialects = ["::kiln::tile_gpu::TileGpuDialect"];
}

def OptimizeLayouts : Pass<"kiln-optimize-layouts", "::mlir::ModuleOp"> {
  let summary = "Removes, hoists and sinks layout conversions where the planner says that it pays";
  let description = [{
    A conversion is hoisted above cheap operations, sunk into its use, or removed by computing its operand again in the
    other layout, also through the values that loops and conditions carry.  A tile that is only stored may be stored with
    each warp's rows side by side: where the warps have those rows already, no warp waits for another.  The planner prices
    the function before and after, and only a rewrite that makes it cheaper stays.
  }];
  let dependentDialects = ["::kiln::tile_gpu::TileGpuDialect"];
}

def PipelineLoops : Pass<"kiln-pipeline-loops", "::mlir::ModuleOp"> {
  let summary = "Copies the tiles of later rounds of a loop to shared memory while this one is worked on";
  let description = [{
    In an scf.for with `tile.num_stages` = s > 1 (its own or the kernel's, not that of a loop around it), loads of tiles
    become asynchronous copies into a pipeline of s slots, s - 1 rounds ahead; their users read shared memory in the
    layout that they want.  Loads that go into a product or into a layout conversion come first, those for elementwise
    work get the room that is left.  Tiles that only products of warpgroups read lie as these want them and are read in
    their slots.  Where the loop's only product adds such tiles to sums that the loop carries, and there are three slots
    or more, it may be in flight until the next round has begun its own: then copies are made s - 2 rounds ahead.
    On targets with tensor maps the copy engine fetches tiles that products read in their slots, and tiles that threads
    read from there as cheaply as from others, if it can fetch all that the loop stages (and a product reads one of them
    in its slot, or there is one product alone); tiles of different products then have pipelines of their own.  It
    fetches tiles of host views, which
    are made of the kernel's arguments by sums and products, with an aligned address and aligned strides; of their
    slices, too; not of narrowed views.  A remark names each tile that it cannot fetch.  The kernel gets an argument for
    each map.
    Addresses of later rounds are computed from what the loop counts and carries.
    Stores and atomic operations in the loop do not stop loads through other arguments, which are other memory; they
    stop a load through the same argument, and one where either pointer's origin is unknown.  A load or a loop that
    cannot be pipelined stays as it is and a remark says why: a target without such copies, rows that are not aligned to
    4 bytes, memory that the loop writes, an atomic operation that acquires, addresses that depend on what the loop
    computes, no room in shared memory.
  }];
  let dependentDialects = ["::kiln::tile_gpu::TileGpuDialect", "::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

def TakeTurns : Pass<"kiln-take-turns", "::mlir::ModuleOp"> {
  let summary = "Warpgroups multiply one after the other in loops that compute as well";
  let description = [{
    In a loop with stages whose rounds begin several products of warpgroups at once and then compute, with two
    warpgroups or more and no barrier of the block: each warpgroup begins its products when the one before has begun its
    own, and computes while the others multiply.  Where products take at least twice as long as the powers of a round.
  }];
}

def DelayProducts : Pass<"kiln-delay-products", "::mlir::ModuleOp"> {
  let summary = "Makes a loop's last product in the next round, in flight while that one computes";
  let description = [{
    In a loop with stages that only reads memory and whose last product is one of warpgroups, of what the round computed
    from another product by a tile that it loads, added to sums that it carries: the product is made in the next round,
    after that one's first product, and what uses the sums comes last there.  The first round comes before the loop, the
    last product after it.  A tile that the round makes of what it loads is made in its own round, after the products
    have begun, and carried to the next.

    A product of what warps exchange that the loop only adds to memory, by relaxed atomic operations, is made a round
    late too, of a carried tile, and added before the round's second product; once more after the loop.
  }];
  let dependentDialects = ["::kiln::tile::TileDialect", "::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

def RotateProducts : Pass<"kiln-rotate-products", "::mlir::ModuleOp"> {
  let summary = "Reads the first parts of a product's operands a round ahead";
  let description = [{
    In a loop that waits for a slot of a pipeline, acquires and commits one and releases the first, and whose only
    product is of two tiles from that slot: where registers allow, a round's first part of both tiles along K is read
    into registers before the last part of the round before is multiplied.
  }];
  let dependentDialects = ["::kiln::tile_gpu::TileGpuDialect", "::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

def ResidentOperands : Pass<"kiln-resident-operands", "::mlir::ModuleOp"> {
  let summary = "Keeps loop-invariant operands of products in shared memory, where registers are short";
  let description = [{
    In loops that wait for a pipeline, until what is alive in the loop leaves room in a thread's registers, the largest
    operands first.  Each round reads them again.
  }];
  let dependentDialects = ["::kiln::tile_gpu::TileGpuDialect"];
}

def FetchProgramTiles : Pass<"kiln-fetch-program-tiles", "::mlir::ModuleOp"> {
  let summary = "Copies a tile that each program of a loop over programs loads once by the copy engine";
  let description = [{
    In a loop from `tile.program_id` in steps of `tile.num_programs`: a load of the loop's own block that only products
    of warpgroups read becomes a copy by a tensor map into a `bulk` pipeline of one slot, which is released after the last
    operation that looks at their sums.  Not where the loop writes through the same argument, or acquires.
  }];
  let dependentDialects = ["::kiln::tile_gpu::TileGpuDialect"];
}

def CarryPipelines : Pass<"kiln-carry-pipelines", "::mlir::ModuleOp"> {
  let summary = "Keeps pipelines from one program of a loop over programs to the next";
  let description = [{
    In a loop from `tile.program_id` in steps of `tile.num_programs`: a `bulk` pipeline that begins and ends in each round,
    in the loop's own block or in a conditional there, is made once and carried, so that the next program's copies begin
    while this one still computes and stores.  What was committed and not used is waited for and released at the end of a
    round.  A remark says why one stays: too many slots for the proof, or no room in shared memory for all of the loop's
    next to each other.
  }];
  let dependentDialects = ["::kiln::tile_gpu::TileGpuDialect", "::mlir::scf::SCFDialect"];
}

def LowerPipelines : Pass<"kiln-lower-pipelines", "::mlir::ModuleOp"> {
  let summary = "Makes buffers, numbers of slots, and groups of copies or mbarriers of pipelines";
  let description = [{
    Follows each pipeline's states through scf.for and scf.if.  A wait becomes the wait for the oldest group and a
    barrier of the block; acquiring and releasing only change numbers.  In a `bulk` pipeline each slot has two mbarriers,
    which say that it is full and that it is empty: one thread waits until it is empty, copies and arrives; all threads
    wait until it is full, each warp arrives when it has read it, and the block meets nowhere.  Errors: a slot acquired
    while none is free, a wait for what was never committed, a state used twice or lost, a round or one side of a
    conditional that leaves a pipeline as it must not be, a pipeline without end, one that goes through other control
    flow; a slot that something else fills than its pipeline says.
  }];
  let dependentDialects = ["::kiln::tile_gpu::TileGpuDialect", "::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

def VerifyStage : Pass<"kiln-verify-stage", "::mlir::ModuleOp"> {
  let summary = "Checks that a module holds only what a stage allows";
  let description = [{
    Foreign operations come from one list (arith, math, scf, func, ub); elementwise operations have one layout; no
    `index` type; loops run on i32 or i64; at stage tile_gpu every tile has a layout, and the target has what every
    operation needs; copies into a buffer of a name come from the argument of that name.
  }];
  let options = [Option<"stage", "stage", "std::string", /*default=*/"\"tile\"", "tile or tile_gpu">];
}

def TestAxisInfo : Pass<"kiln-test-axis-info", "::mlir::ModuleOp"> {
  let summary = "Writes what the axis analysis knows next to each operation, for tests and for reading";
  let description = [{
    Adds the attribute `facts` to every operation with integer or pointer results: contiguity c, divisibility v and
    constancy k of each dimension; `facts.arguments` for the arguments of its regions; `access` to memory operations.
  }];
}

//===----------------------------------------------------------------------===//
// tile_gpu
//===----------------------------------------------------------------------===//

def ExpandShared : Pass<"kiln-expand-shared", "::mlir::ModuleOp"> {
  let summary = "Makes stores and loads of shared memory explicit";
  let description = [{
    Layout conversions by their plan, reductions and scans across warps, gathers, operands of warpgroups' products, and
    results of atomic operations that other warps need become local_alloc, exchange_store, exchange_load, local_store,
    local_load and gather_shared.  What needs no shared memory stays as it is.  No later stage allocates shared memory.

    An operand of warpgroups is stored once for all products of a block that read it, however transposed, in the layout
    that is cheapest to store: as soon as it is computed, or if that takes more than three quarters of shared memory
    before its first use, or before each use on its own.  One that lies in a slot of a pipeline as these products want
    it is read there.
  }];
  let options = [Option<"scratchBytes", "scratch-bytes", "int64_t", /*default=*/"49152",
                        "most bytes of scratch that one conversion may use, 1024 to 1048576">];
  let dependentDialects = ["::kiln::tile_gpu::TileGpuDialect", "::mlir::arith::ArithDialect", "::mlir::ub::UBDialect"];
}

def RelieveRegisters : Pass<"kiln-relieve-registers", "::mlir::ModuleOp"> {
  let summary = "Keeps operands of products in shared memory where a thread's registers are short";
  let description = [{
    An estimate says how many registers the tiles take that are alive at once.  In a kernel with products where a thread
    has fewer, the store and the load of layout conversions through shared memory are scheduled apart: the tile is
    stored as soon as it can be computed, with the cheap operations that it is computed by, and read just before its
    first use; each product reads on its own, so that lowering can read piece by piece.  This is done as far as there is
    shared memory, and only if it helps.  Before that, tiles of ranges and scalars (positions) that only arms of
    conditionals look at are computed in each arm.  Kernels whose tiles fit stay as they are.
  }];
  let dependentDialects = ["::kiln::tile_gpu::TileGpuDialect"];
}

def BulkSums : Pass<"kiln-bulk-sums", "::mlir::ModuleOp"> {
  let summary = "Has the copy engine add tiles to memory that loops sum up there";
  let description = [{
    An atomic addition of a tile of f32 in a loop, relaxed, for the GPU, whose old values nobody looks at, becomes a store
    to a buffer and a `tile_gpu.bulk_add`, on targets with the copy engine: threads need not wait until the memory unit
    has read their registers.  Where what a warp has of the tile lies together in memory, 512 bytes or more at a time,
    masked alike; where nothing else in the kernel accesses that memory but counts; and where the buffer leaves the kernel
    its other shared memory and a multiprocessor as many blocks.  Else the addition stays, and a remark says why.  Sums of
    one type share a buffer: each waits until the engine has read the one before.

    Before a `tile_gpu.count` of such sums all threads wait until the engine has added them.  The elected thread counts,
    if warps that copy can compute what that takes and the pointers come from one argument; else the first one.
  }];
  let dependentDialects = ["::kiln::tile_gpu::TileGpuDialect"];
}

def AllocateShared : Pass<"kiln-allocate-shared", "::mlir::ModuleOp"> {
  let summary = "Gives every buffer its place in shared memory, by liveness";
  let description = [{
    A buffer lives from its local_alloc to its last use, through every loop that it enters from outside; buffers that are
    never alive together share bytes.  An offset that is there already stays.  If it does not fit the target, the largest
    scratches are planned again with less, down to 1 KiB.  The function's attribute `tile_gpu.shared_bytes` is the sum.

    Two buffers that share bytes need a barrier between the last access to one and the first to the other.  Where there
    is none anyway, as between one exchange and the next, they lie apart if there are free bytes: so few that a
    multiprocessor holds as many blocks as without them (by its warps, its shared memory, and the registers that the
    kernel's tiles need at least), and at most half of its shared memory.  In the innermost loops only.
  }];
  let options = [Option<"limit", "limit", "int64_t", /*default=*/"0",
                        "bytes that a kernel may use; 0: what the target allows">,
                 Option<"spread", "spread", "bool", /*default=*/"true", "spend free bytes on fewer barriers">];
  let dependentDialects = ["::kiln::tile_gpu::TileGpuDialect", "::mlir::ub::UBDialect"];
}

def CountGroups : Pass<"kiln-count-groups", "::mlir::ModuleOp"> {
  let summary = "Counts how many groups of asynchronous copies each wait may leave in flight";
  let description = [{
    Fills in `groups` of every async_wait: the least number of commits, over all paths, after that of the youngest token
    it waits for.  0, which waits for everything, where there is no token or where nobody knows which commit it is of.
    A number that is there already stays.
  }];
  let dependentDialects = ["::kiln::tile_gpu::TileGpuDialect"];
}

def InsertBarriers : Pass<"kiln-insert-barriers", "::mlir::ModuleOp"> {
  let summary = "Adds the barriers that accesses to memory need";
  let description = [{
    Between two accesses to the same bytes, one of them a write: a barrier of the block if different warps access them,
    one of the warp if different lanes do, nothing if the same lane does.  Bytes of shared memory are those of the
    plans and layouts, at the buffers' offsets: run allocate-shared before.  Buffers of one allocation are told apart
    by constant numbers, and by slot numbers that a loop counts modulo the number of slots.  An async_wait publishes
    its buffers: who reads them next needs a barrier after it.  An mbarrier_wait needs none: what came before to its
    `ready` buffers is done, for all threads, or in a tile_gpu.elected for that one.  A copy that nobody waits for
    cannot be repaired here.  A load and a store of global memory may meet if their addresses come from the same
    argument of the kernel, or if the origin of one is unknown; an atomic operation that releases comes after every
    access before it, one that acquires before every access after it.  Asynchronous copies read global memory from the
    operation to their wait.
  }];
  let dependentDialects = ["::kiln::tile_gpu::TileGpuDialect"];
}

def VerifyBarriers : Pass<"kiln-verify-barriers", "::mlir::ModuleOp"> {
  let summary = "Proves that no two warps race on shared memory, or says where they may";
  let description = [{
    Independent of insert-barriers, for any function with offsets on its buffers.  Every path is looked at; a loop whose
    slot numbers repeat after a few rounds is unrolled by that many.  An asynchronous copy writes until a wait on the
    path covers its group, by the commits between and the wait's `groups`; then until a barrier.  For as long it also
    reads global memory, which nobody may write meanwhile: different arguments of the function are different memory.
    An mbarrier orders what comes before an arrival and what comes after a wait for its phase; in a tile_gpu.elected for
    that thread alone, until that one hands it on.  A tensor_copy writes until a wait for the phase that it counts to.
    Which mbarrier and which phase these are must be known on every path: numbers that a loop carries are followed, also
    after it.
    Errors: a race, with both accesses and the path between them; an access to bytes that a copy in flight may still
    write, or a write of memory that it may still read; a copy of what others have yet to store; a wait for an arrival
    that never comes; phases and arrivals of an mbarrier that are not as they are said to be, or may be taken for one
    another; or what cannot be proved, with the expression that is not known.
  }];
  let options = [Option<"remarks", "remarks", "bool", /*default=*/"false", "say what was proved">];
}

def SpecializeWarps : Pass<"kiln-specialize-warps", "::mlir::ModuleOp"> {
  let summary = "Gives a kernel warps that only copy, where that pays";
  let description = [{
    In a kernel of two warpgroups or more that does not say itself how many warps copy (`tile.copy_warps`), nor how many
    registers a thread has, and whose copies by tensor maps stand in a loop that computes while products are in flight, or
    in one over programs: a warpgroup of its own copies, on targets where it can hand its registers on.  A remark says
    what is in the way.  With `again` it only takes that back where barriers made since then are in the way.
  }];
  let options = [Option<"again", "again", "bool", /*default=*/"false", "look again after barriers were made">];
}

def SplitRoles : Pass<"kiln-split-roles", "::mlir::ModuleOp"> {
  let summary = "Makes one program for the warps that copy and one for those that compute";
  let description = [{
    Of kernels with `tile.copy_warps`, after their barriers are proved.  The warps that copy get what stands in
    tile_gpu.elected, the barriers of the block, and the loops, conditionals and scalars that these need; the others get
    the rest.  Where whole warpgroups copy, they give registers to those that compute.
  }];
  let dependentDialects = ["::kiln::tile_gpu::TileGpuDialect", "::mlir::scf::SCFDialect"];
}

def InsertDelays : Pass<"kiln-insert-delays", "::mlir::ModuleOp"> {
  let summary = "Makes warps late at barriers, to find out on a GPU who relies on their being early";
  let description = [{
    With `seed` every hand-off of shared memory (a barrier, an arrival at an mbarrier or a wait for one, a
    tile_gpu.elected with some; numbered from 0 in program order) gets a delay before and one after it, of random
    length for each warp and block.  With `warp` only that warp is late, and only at hand-off `hand-off`; a kernel that
    lacks one of the two stays as it is.  KILN_STRESS=seed and KILN_STRESS=warp:hand-off add it to a compile.
  }];
  let options = [
    Option<"seed", "seed", "int64_t", /*default=*/"-1", "of the random lengths, 0 or more">,
    Option<"warp", "warp", "int64_t", /*default=*/"-1", "the warp that is late">,
    Option<"handOff", "hand-off", "int64_t", /*default=*/"-1", "where it is late">];
  let dependentDialects = ["::kiln::tile_gpu::TileGpuDialect"];
}

//===----------------------------------------------------------------------===//
// tile_gpu -> LLVM
//===----------------------------------------------------------------------===//

def LowerTiles : Pass<"kiln-lower-tiles", "::mlir::ModuleOp"> {
  let summary = "Tiles become scalars a thread, memory operations LLVM and NVVM operations";
  let description = [{
    A tile becomes as many scalars as a thread holds of it.  Accesses to memory take the width that alignment and
    contiguity allow.  No shared memory is allocated and no barrier added here: both stand in the input.
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect", "::mlir::NVVM::NVVMDialect", "::mlir::arith::ArithDialect",
                           "::mlir::math::MathDialect"];
}

def LowerNumbers : Pass<"kiln-lower-numbers", "::mlir::ModuleOp"> {
  let summary = "Scalar mathematics by the table of numbers; integer operations made total";
  let description = [{
    Functions and divisions take their code from one table, by operation, type and grade (docs/numbers.md).  Integer
    divisions by zero, shifts past the width and conversions out of range yield some value, never undefined behaviour.
  }];
  let options = [Option<"printTable", "print-table", "bool", /*default=*/"false", "print the table as Markdown">];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect", "::mlir::NVVM::NVVMDialect", "::mlir::arith::ArithDialect"];
}

def ToLLVM : Pass<"kiln-to-llvm", "::mlir::ModuleOp"> {
  let summary = "Functions, control flow and scalars to the LLVM dialect, kernels marked as such";
  let description = [{
    Converts `func`, `scf` and `arith`; kernels become PTX entries with their number of threads.
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect", "::mlir::NVVM::NVVMDialect", "::mlir::cf::ControlFlowDialect"];
}

#endif // KILN_PASSES
