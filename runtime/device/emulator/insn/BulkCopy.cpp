// cp.async.bulk, cp.reduce.async.bulk, their tensor forms, tensormap: section 3.3 of the emulator specification.  The
// work is done in ../BulkCopies.cpp, ../TensorCopies.cpp and ../TensorMapOps.cpp, operands are read in
// ../DecodeBulk.cpp; here are the forms, those that ptxas 13.0 takes.
#include "runtime/device/emulator/insn/Families.h"

#include "runtime/device/emulator/decode/DecodeBulk.h"

#include "runtime/device/emulator/execute/LevelBegin.h"

namespace kiln::emulator::KILN_EMULATOR_LEVEL {
namespace {

#define KILN_HINT " L2::cache_hint?"
#define KILN_COUNTED " mbarrier::complete_tx::bytes"
#define KILN_CLUSTER "shared::cluster shared::cta" KILN_COUNTED
#define KILN_GLOBAL "global shared::cta bulk_group" KILN_HINT
#define KILN_RANK "1d|2d|3d|4d|5d "
#define KILN_LOADS " tile|tile::gather4|im2col|im2col::w|im2col::w::128?"
#define KILN_STORES " tile|tile::scatter4|im2col_no_offs?"

constexpr Row bulk(const char *mnemonic, const char *modifiers, const char *types,
                   bool (*decode)(DecodeContext &, const Form &, const ptx::Instruction &, Op &), unsigned minSm = 90) {
  return {mnemonic, modifiers, types, "custom", minSm, nullptr, Plain, decode};
}

constexpr Row replaceMap(const char *modifiers, const char *types, unsigned minSm = 90) {
  return {"tensormap.replace", modifiers, types, "custom", minSm, nullptr, Plain, decodeMapReplace, true};
}
#define KILN_MAP " tile global|shared::cta? b1024"

constexpr Row rows[] = {
    bulk("cp.async.bulk", "shared::cluster|shared::cta global" KILN_COUNTED " multicast::cluster?" KILN_HINT, "",
         decodeBulkLoad),
    bulk("cp.async.bulk", KILN_CLUSTER, "", decodeBulkToCluster),
    bulk("cp.async.bulk", KILN_GLOBAL, "", decodeBulkStore),
    bulk("cp.async.bulk", KILN_GLOBAL " cp_mask", "", decodeBulkStore, 100),
    bulk("cp.async.bulk.prefetch", "L2 global" KILN_HINT, "", decodeBulkPrefetch),
    bulk("cp.async.bulk.commit_group", "", "", decodeBulkCommit),
    bulk("cp.async.bulk.wait_group", "read?", "", decodeBulkWait),

    bulk("cp.reduce.async.bulk", KILN_CLUSTER " add", "u32|s32|u64", decodeBulkToCluster),
    bulk("cp.reduce.async.bulk", KILN_CLUSTER " min|max", "u32|s32", decodeBulkToCluster),
    bulk("cp.reduce.async.bulk", KILN_CLUSTER " inc|dec", "u32", decodeBulkToCluster),
    bulk("cp.reduce.async.bulk", KILN_CLUSTER " and|or|xor", "b32", decodeBulkToCluster),
    bulk("cp.reduce.async.bulk", KILN_GLOBAL " add", "u32|s32|u64|f32|f64", decodeBulkStore),
    bulk("cp.reduce.async.bulk", KILN_GLOBAL " add noftz", "f16|bf16", decodeBulkStore),
    bulk("cp.reduce.async.bulk", KILN_GLOBAL " min|max", "u32|s32|u64|s64|f16|bf16", decodeBulkStore),
    bulk("cp.reduce.async.bulk", KILN_GLOBAL " inc|dec", "u32", decodeBulkStore),
    bulk("cp.reduce.async.bulk", KILN_GLOBAL " and|or|xor", "b32|b64", decodeBulkStore),

    bulk("cp.async.bulk.tensor",
         KILN_RANK "shared::cluster|shared::cta global" KILN_COUNTED KILN_LOADS
                   " multicast::cluster? cta_group::1|cta_group::2?" KILN_HINT,
         "", decodeTensorLoad),
    bulk("cp.async.bulk.tensor", KILN_RANK KILN_GLOBAL KILN_STORES, "", decodeTensorStore),
    bulk("cp.reduce.async.bulk.tensor", KILN_RANK KILN_GLOBAL KILN_STORES " add|min|max|inc|dec|and|or|xor", "",
         decodeTensorStore),
    bulk("cp.async.bulk.prefetch.tensor", KILN_RANK "L2 global" KILN_LOADS KILN_HINT, "", decodeTensorPrefetch),

    replaceMap("global_address|global_stride" KILN_MAP, "b64"),
    replaceMap("rank|box_dim|global_dim|element_stride" KILN_MAP, "b32"),
    replaceMap("elemtype|interleave_layout|swizzle_mode|fill_mode" KILN_MAP, "b32"),
    replaceMap("swizzle_atomicity" KILN_MAP, "b32", 100),
    {"tensormap.cp_fenceproxy", "global shared::cta tensormap::generic release cta|cluster|gpu|sys sync aligned", "",
     "custom", 90, nullptr, Aligned, decodeMapCopy},
    bulk("st.bulk", "weak? shared::cta?", "", decodeBulkFill, 100),
};

#undef KILN_MAP
#undef KILN_HINT
#undef KILN_COUNTED
#undef KILN_CLUSTER
#undef KILN_GLOBAL
#undef KILN_RANK
#undef KILN_LOADS
#undef KILN_STORES

} // namespace

std::span<const Row> bulkCopyRows() {
  return rows;
}

} // namespace kiln::emulator::KILN_EMULATOR_LEVEL

#include "runtime/device/emulator/execute/LevelEnd.h"
