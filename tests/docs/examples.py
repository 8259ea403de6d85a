#!/usr/bin/env python3
"""examples.py KILN-OPT PAGE.md ..: every operation of the reference pages has an example, and each example parses.

An example names values and layouts that it does not define. VALUES says of what type they are, for the operations that
need more than the types in the example itself say; what is in a region is defined there.
"""
import re
import subprocess
import sys

LAYOUTS = """
#a = #tile_gpu.blocked<sizePerThread=[1,4], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>
#row = #a
#b = #tile_gpu.blocked<sizePerThread=[4,1], threadsPerWarp=[8,4], warpsPerCTA=[1,4], order=[0,1]>
#v = #tile_gpu.blocked<sizePerThread=[4], threadsPerWarp=[32], warpsPerCTA=[4], order=[0]>
#p = #tile_gpu.linear<lane=[[0],[0],[0],[0],[0]], warp=[[1],[2]], shape=[4]>
#q = #tile_gpu.linear<register=[[1],[2]], lane=[[0],[0],[0],[0],[0]], warp=[[0],[0]], shape=[4]>
#t = #tile_gpu.blocked<sizePerThread=[1,32], threadsPerWarp=[32,1], warpsPerCTA=[2,2], order=[1,0]>
#k = #tile_gpu.dot<op=0, kWidth=2, parent=mma<version=2, warpsPerCTA=[4,1]>>
#tma = #tile_gpu.tma<swizzle=128>
#wgmma = #tile_gpu.mma<version=3, warpsPerCTA=[4,1], instrN=64>
#sh = #tile_gpu.swizzled<vec=8, perPhase=1, maxPhase=4>
#one = #tile_gpu.swizzled<vec=1, perPhase=1, maxPhase=1>
#acc = #tile_gpu.linear<register=[[0,1],[0,2],[0,128],[0,256],[0,512]], lane=[[0,4],[0,8],[0,16],[0,32],[0,64]], warp=[[1,0],[2,0]], shape=[4,1024]>
#column = #tile_gpu.swizzled<vec=8, perPhase=1, maxPhase=4, order=[0,1]>
"""
# A map's type with its recipe; such a function has what the recipe takes for its first arguments.
MAP = ('!tile_gpu.tensor_map {tile_gpu.tensor_map = #tile_gpu.tensor_map<element = "bf16", address = 0, '
       'extents = ()[s0, s1, s2] -> (s2, s1), strides = ()[s0, s1, s2, s3] -> (s3 * 2), box = [64, 128], '
       'swizzle = "128B">}')
TENSOR = "%tensor: !tile.ptr<bf16>, %rows: i64, %columns: i64, %stride: i64"
# Operation -> types of the values that its examples use, in the order of their first use.
VALUES = {
    "tile.addptr": "tensor<128x!tile.ptr<f32>>, tensor<128xi32>",
    "tile.any_row": "tensor<128xi1>",
    "tile.assert": "tensor<128xi1>",
    "tile.assume": "i1",
    "tile.atomic_cas": "!tile.ptr<i32>, i32, i32",
    "tile.atomic_rmw": ["tensor<128x!tile.ptr<f32>>, tensor<128xf32>", "!tile.ptr<i32>, i32, i1"],
    "tile.broadcast": "tensor<64x1xf32>",
    "tile.dot": ["tensor<64x32xbf16>, tensor<32x16xbf16>, tensor<64x16xf32>",
                 "tensor<64x32xf32>, tensor<32x16xf32>, tensor<64x16xf32>"],
    "tile.expand_dims": "tensor<64xf32>",
    "tile.gather": "tensor<64x32xf32>, tensor<64x16xi32>",
    "tile.inline_ptx": ["tensor<128xf32>, tensor<128xf32>", ""],
    "tile.join": "tensor<64xf32>, tensor<64xf32>",
    "tile.load": "tensor<128x!tile.ptr<f32>>, tensor<128xi1>, tensor<128xf32>",
    "tile.load_view": "!tile.view<64x32xf16>, i32, i32",
    "tile.make_view": "!tile.ptr<f16>, i64, i64, i64, i64",
    "tile.max_contiguous": "tensor<64x32xi32>",
    "tile.multiple_of": "tensor<64x32xi32>",
    "tile.narrow_view": "!tile.view<64x32xf16>, i32, i32",
    "tile.num_programs": "",
    "tile.print": "tensor<128xf32>",
    "tile.program_id": "",
    "tile.range": "",
    "tile.reduce": ["tensor<64x32xf32>", "tensor<64xf32>, tensor<64xi32>"],
    "tile.reshape": "tensor<64x32xf32>",
    "tile.scan": "tensor<128xf32>",
    "tile.slice_view": "!tile.view<1x128x1x64xbf16>, i64, i64",
    "tile.splat": "f32",
    "tile.split": "tensor<64x2xf32>",
    "tile.store": "tensor<128x!tile.ptr<f32>>, tensor<128xf32>, tensor<128xi1>",
    "tile.store_view": "!tile.view<64x32xf16>, i32, i32, tensor<64x32xf16>",
    "tile.transpose": "tensor<64x32xf32>",
    "tile_gpu.acquire": "!tile_gpu.pipeline<3, !tile_gpu.buffer<64x32xf16, #sh>>",
    "tile_gpu.async_commit": "",
    "tile_gpu.async_copy": "tensor<64x32x!tile.ptr<f16>, #row>, !tile_gpu.buffer<64x32xf16, #sh>, tensor<64x32xi1, #row>",
    "tile_gpu.async_copy_view": "!tile.view<64x32xf16>, i32, i32, !tile_gpu.buffer<64x32xf16, #sh>",
    "tile_gpu.async_wait": "!tile_gpu.token, !tile_gpu.buffer<64x32xf16, #sh>",
    "tile_gpu.await": "i32, !tile.ptr<i32>, tensor<64x32x!tile.ptr<f32>, #row>",
    "tile_gpu.bulk_add": "!tile_gpu.buffer<4x1024xf32, #tma>, tensor<4x1024x!tile.ptr<f32>, #acc>, tensor<4x1024xi1, #acc>",
    "tile_gpu.bulk_wait": "",
    "tile_gpu.count": ["!tile.ptr<i32>, i1, tensor<64x32x!tile.ptr<f32>, #row>",
                       "!tile.ptr<i32>, i1, i32, !tile.ptr<i32>, tensor<64x32x!tile.ptr<f32>, #row>"],
    "tile_gpu.local_scalar": "!tile_gpu.buffer<1xi32, #one>",
    "tile_gpu.commit": "!tile_gpu.pipeline<3, !tile_gpu.buffer<64x32xf16, #sh>>",
    "tile_gpu.delay": "",
    "tile_gpu.barrier": "",
    "tile_gpu.convert_layout": "tensor<64x32xf32, #a>",
    "tile_gpu.elected": "!tile_gpu.mbarriers<2>, i32, i32, !tile_gpu.buffer<128x64xbf16, #tma>, "
                        + MAP + ", i32, i32, !tile_gpu.mbarriers<2>",
    "tile_gpu.mbarrier_arrive": "!tile_gpu.mbarriers<3>, i32, i32",
    "tile_gpu.mbarrier_init": "!tile_gpu.mbarriers<3>",
    "tile_gpu.mbarrier_invalidate": "!tile_gpu.mbarriers<3>",
    "tile_gpu.mbarrier_wait": "!tile_gpu.mbarriers<3>, i32, i32, !tile_gpu.buffer<64x32xf16, #sh>",
    "tile_gpu.drain": "!tile_gpu.pipeline<3, !tile_gpu.buffer<64x32xf16, #sh>>",
    "tile_gpu.part": "tensor<64x64xf16, #k>",
    "tile_gpu.exchange_load": "!tile_gpu.scratch<4096>, tensor<64x32xf32, #b>",
    "tile_gpu.exchange_store": "tensor<64x32xf32, #a>, !tile_gpu.scratch<4096>",
    "tile_gpu.gather_shared": "!tile_gpu.buffer<64x32xf32, #sh>, tensor<64x16xi32, #a>",
    "tile_gpu.local_alloc": "",
    "tile_gpu.local_load": "!tile_gpu.buffer<64x32xf16, #sh>",
    "tile_gpu.local_store": "tensor<64x32xf16, #row>, !tile_gpu.buffer<64x32xf16, #sh>",
    "tile_gpu.local_subview": "!tile_gpu.buffer<[3] x 64x32xf16, #sh>, i32",
    "tile_gpu.local_transpose": "!tile_gpu.buffer<64x32xf16, #sh>",
    "tile_gpu.named_arrive": "",
    "tile_gpu.named_barrier": "",
    "tile_gpu.reduce_partial": "tensor<512xf32, #v>",
    "tile_gpu.pipeline": "",
    "tile_gpu.release": "!tile_gpu.pipeline<3, !tile_gpu.buffer<64x32xf16, #sh>>",
    "tile_gpu.scan_apply": "tensor<512xf32, #v>, tensor<4xf32, #q>",
    "tile_gpu.scan_before": "tensor<64x32xf32, #t>",
    "tile_gpu.scan_partial": "tensor<512xf32, #v>",
    "tile_gpu.slots": "!tile_gpu.pipeline<3, !tile_gpu.buffer<64x32xf16, #sh>>, i32",
    "tile_gpu.tensor_copy": MAP + ", i32, i32, !tile_gpu.buffer<128x64xbf16, #tma>, !tile_gpu.mbarriers<2>, i32",
    "tile_gpu.turn_pass": "",
    "tile_gpu.turn_take": "",
    "tile_gpu.roles": "",
    "tile_gpu.turns_begin": "",
    "tile_gpu.turns_end": "",
    "tile_gpu.wait": "!tile_gpu.pipeline<3, !tile_gpu.buffer<64x32xf16, #sh>>",
    "tile_gpu.warp_barrier": "",
    "tile_gpu.warpgroup_begin": "tensor<64x64xf32, #wgmma>",
    "tile_gpu.warpgroup_dot": "!tile_gpu.buffer<64x64xbf16, #tma>, !tile_gpu.buffer<64x64xbf16, #tma>, tensor<64x64xf32, #wgmma>",
    "tile_gpu.warpgroup_wait": "!tile_gpu.pending<tensor<64x64xf32, #wgmma>>",
}
# Terminators stand at the end of the regions of other operations' examples.
INSIDE = {"tile.yield": "tile.reduce", "tile_gpu.yield": "tile_gpu.reduce_partial"}
# What one thread does is not an operation of a function's own.
ELECTED = ("tile_gpu.mbarrier_init", "tile_gpu.mbarrier_invalidate", "tile_gpu.tensor_copy")


def sections(text):
    """(operation, example) of every operation of a page; the example is empty if there is none."""
    for part in re.split(r"^### `", text, flags=re.M)[1:]:
        name = part[: part.index("`")]
        if "." in name:
            example = re.search(r"```mlir\n(.*?)```", part, flags=re.S)
            yield name, example[1] if example else ""


def statements(example):
    """The operations of an example, each with its region and the lines that go on."""
    out = []
    for line in example.splitlines():
        if line and not line.startswith((" ", "^", "}")):
            out.append([])
        out[-1].append(line)
    return ["\n".join(lines) for lines in out]


def split(types):
    """At the commas outside of brackets."""
    out, depth = [""], 0
    for c in types.replace("->", "~"):
        depth += (c in "<{([") - (c in ">})]")
        if c == "," and depth == 0:
            out.append("")
        else:
            out[-1] += c
    return [t.strip().replace("~", "->") for t in out if t.strip()]


def function(number, statement, types):
    types = split(types)
    elected = statement.startswith("tile_gpu.elected")
    outside = statement if elected else re.sub(r"\{\n.*\n\}", "", statement, flags=re.S)
    defined = outside.split(" = ")[0] if outside.startswith("%") else ""
    used = outside.removeprefix(defined)
    names = list(dict.fromkeys(re.findall(r"%\w+", used)))
    arguments = ", ".join(f"{name}: {type_}" for name, type_ in zip(names, types))
    if MAP in types:
        arguments = f"{TENSOR}, {arguments}"
    if statement.startswith(ELECTED):
        statement = f"tile_gpu.elected {{\n{statement}\n}}"
    attributes = "attributes {tile.num_warps = 8 : i32} " if statement.startswith("tile_gpu.turn") else ""
    if statement.startswith("tile_gpu.roles"):
        attributes = "attributes {tile.kernel, tile.num_warps = 8 : i32, tile.copy_warps = 4 : i32} "
    return f"func.func @example{number}({arguments}) {attributes}{{\n{statement}\nreturn\n}}\n"


def main():
    kiln_opt, pages = sys.argv[1], sys.argv[2:]
    source, wrong, count = LAYOUTS, [], 0
    texts = [open(page, encoding="utf-8").read() for page in pages]
    examples = {name: example for text in texts for name, example in sections(text)}
    for name, example in examples.items():
        if not example:
            wrong.append(f"{name} has no example")
        elif name in INSIDE:
            if example.strip().split(" ")[0] not in examples.get(INSIDE[name], ""):
                wrong.append(f"{name} is not in the example of {INSIDE[name]}")
        elif name not in VALUES:
            wrong.append(f"{name}: say in VALUES of tests/docs/examples.py of what types the example's values are")
        else:
            types = VALUES[name]
            for i, statement in enumerate(statements(example)):
                if name not in statement:
                    wrong.append(f"{name}: the example has another operation: {statement}")
                of_this = types if isinstance(types, str) else types[min(i, len(types) - 1)]
                source += f"// {name}\n" + function(count, statement, of_this)
                count += 1
    run = subprocess.run([kiln_opt, "-"], input=source, text=True, capture_output=True)
    if run.returncode:
        line = re.search(r"<stdin>:(\d+)", run.stderr)
        context = source.splitlines()[max(0, int(line[1]) - 4): int(line[1]) + 2] if line else []
        wrong.append("an example does not parse:\n" + "\n".join(context) + "\n" + run.stderr)
    if wrong or count < 40:
        sys.exit("\n".join(wrong) or f"only {count} examples")
    print(f"{len(examples)} operations, {count} examples parse")


if __name__ == "__main__":
    main()
