"""What the performance page shows: benchmarks, each with the command that times Kiln and the peers next to it.

record_benchmarks.py runs these, performance.py makes the page of what it recorded.  A row added here is on both.
"""
import itertools
import pathlib
import struct
from dataclasses import dataclass, field


@dataclass
class Benchmark:
    id: str
    group: str
    row: str  # benchmarks of one row differ in their part
    part: str  # "" where a row has one benchmark
    unit: str  # GB/s, TFLOP/s, ms or us
    work: float  # bytes or floating-point operations of one call; 0 for ms
    kiln: list  # the words after `kiln COMMAND`
    peers: list = field(default_factory=list)  # names of functions of bench_peers.py
    shape: tuple = ()
    documents: tuple = ()  # lengths; {documents} among the words is a file that says which one each token belongs to
    measure: str = "medianMs"  # of what `kiln bench` says of the call
    command: str = "bench"
    modelled: bool = True  # not: programs that wait for each other, of which the model has no time

    def words(self, folder):
        """Those after the command; a file that they name is written to the folder."""
        if not self.documents:
            return self.kiln
        file = pathlib.Path(folder) / f"{self.id}.npy"
        write_npy(file, [n for n, length in enumerate(self.documents) for _ in range(length)])
        return [word.replace("{documents}", str(file)) for word in self.kiln]

    @property
    def title(self):
        return f"{self.row}, {self.part}" if self.part else self.row


def write_npy(file, numbers):
    """Whole numbers as a .npy file of int32."""
    head = f"{{'descr': '<i4', 'fortran_order': False, 'shape': ({len(numbers)},), }}"
    head += " " * (-(len(head) + 11) % 64) + "\n"
    file.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() +
                     struct.pack(f"<{len(numbers)}i", *numbers))


def memory():
    rows, columns, n = 8192, 8192, 1 << 27
    for dtype, size in (("f32", 4), ("bf16", 2)):
        for name, shape, moved in (("copy", (n,), 2), ("add", (n,), 3), ("transpose", (16384, 16384), 2),
                                   ("softmax", (rows, columns), 2), ("layer_norm", (rows, columns), 2),
                                   ("cumsum", (rows, columns), 2), ("reduce_sum", (n,), 1)):
            count = 1
            for extent in shape:
                count *= extent
            extents = " x ".join(str(e) for e in shape)
            yield Benchmark(f"{name}-{dtype}", "Memory", f"{name}, {extents}", dtype, "GB/s", moved * count * size,
                            [name, "--dtype", dtype], [f"torch {name}"], shape + (dtype,))


def products():
    for name, n in (("matmul-bf16", 8192), ("matmul-bf16-4096", 4096)):
        yield Benchmark(name, "Products", f"matmul bf16, {n}^3", "", "TFLOP/s", 2 * n**3,
                        ["matmul", "--dtype", "bf16", "--with", f"a=1x{n}x{n}", "--with", f"b=1x{n}x{n}"],
                        ["cuBLAS", "Triton"], (n,))
    for dim, causal, length in itertools.product((64, 128, 256), (False, True), (512, 1024, 2048, 4096, 8192, 16384)):
        called = "" if length == 8192 else f"-{length}"
        batch, heads = 16384 // length, 2048 // dim
        tensor = f"{batch}x{length}x{heads}x{dim}"
        words = ["attention", "--dtype", "bf16"]
        for name in "qkv":
            words += ["--with", f"{name}={tensor}"]
        if causal:
            words += ["--with", "causal"]
        flops = 4 * batch * heads * length * length * dim * (0.5 if causal else 1)
        way = "causal" if causal else "full"
        # Triton's tutorial takes head dims up to 128, and tunes itself for seconds a length.
        peers = ["cuDNN", "FlashAttention-2"] + (["Triton"] if dim < 256 and length == 8192 else [])
        yield Benchmark(f"attention-{dim}{called}-{way}", "Products", f"attention bf16, D = {dim}, {way}",
                        f"S = {length}", "TFLOP/s", flops, words, peers, (batch, length, heads, dim, causal))
    for dim in (64, 128, 256):  # PyTorch has no attention of such types to time
        length, heads = 16384, 2048 // dim
        words = ["attention", "--dtype", "e4m3"]
        for name in "qkv":
            words += ["--with", f"{name}=1x{length}x{heads}x{dim}"]
        yield Benchmark(f"attention-{dim}-e4m3-full", "Products", f"attention e4m3, S = {length}, full", f"D = {dim}",
                        "TFLOP/s", 4 * heads * length * length * dim, words, [], (1, length, heads, dim, False))


def gradients():
    length = 8192

    def one(dim, causal, name="", what="", extra=(), peers=("cuDNN backward", "FlashAttention-2 backward"), **fields):
        batch, heads = 16384 // length, 2048 // dim
        words = ["attention_backward", "--dtype", "bf16", "--with", "o=attention", "--with", "lse=attention", *extra]
        for tensor in ("q", "k", "v", "do"):
            words += ["--with", f"{tensor}={batch}x{length}x{heads}x{dim}"]
        if causal:
            words += ["--with", "causal"]
        way = "causal" if causal else "full"
        row, part = (f"attention_backward bf16, D = {dim}, S = {length}{what}", way)
        if name == "-deterministic":  # one row of all
            row, part = (f"attention_backward bf16, S = {length}{what}", f"D = {dim} {way}")
        return Benchmark(f"attention_backward-{dim}{name}-{way}", "Products", row, part, "TFLOP/s",
                         10 * batch * heads * length * length * dim * (0.5 if causal else 1), words, list(peers),
                         (batch, length, heads, dim, causal), **fields)

    both = (False, True)
    for dim, causal in itertools.product((64, 128, 256), both):
        yield one(dim, causal)
    for causal in both:
        yield one(128, causal, "-mma_sync", ", code for sm_80", ["--code-target", "sm_80"], ["FlashAttention-2 backward"])
    for dim, causal in itertools.product((64, 128), both):
        yield one(dim, causal, "-deterministic", ", deterministic", ["--with", "deterministic", "--no-check"], (),
                  modelled=False)


def decoding():
    batch, keys, heads, key_heads, dim = 32, 8192, 64, 8, 128
    for tokens in (1, 8, 16):
        words = ["attention_decode", "--dtype", "bf16", "--with", f"q={batch}x{tokens}x{heads}x{dim}"]
        for name in ("k_cache", "v_cache"):
            words += ["--with", f"{name}={batch}x{keys}x{key_heads}x{dim}"]
        if tokens > 1:
            words += ["--with", "causal"]
        moved = 2 * batch * dim * (2 * keys * key_heads + 2 * tokens * heads)  # of k, v, q and o
        yield Benchmark(f"decode-{tokens}", "Decoding", f"attention_decode bf16, {batch} x {keys} keys, {heads} heads over "
                        f"{key_heads}, D = {dim}", "1 token" if tokens == 1 else f"{tokens} tokens", "GB/s", moved, words,
                        ["cuDNN decode", "FlashAttention-2 decode"], (batch, tokens, keys, heads, key_heads, dim))


# 16 documents of 16,384 tokens, of which each sees its own document: of the same length, and of a few long ones and many
# short ones.
DOCUMENTS = {"equal": (1024,) * 16,
             "tail": (6144, 3072, 1792, 1216, 896, 704, 560, 448, 352, 288, 240, 192, 160, 128, 112, 80)}


def documents():
    """Masks and lists of blocks of the caller's.  The same work without them: attention-128-16384-full."""
    heads, dim = 16, 128
    for backward, (way, lengths) in itertools.product((False, True), DOCUMENTS.items()):
        length = sum(lengths)
        name = "attention_backward" if backward else "attention"
        words = [name, "--dtype", "bf16"]
        for tensor in ("q", "k", "v") + (("do",) if backward else ()):
            words += ["--with", f"{tensor}=1x{length}x{heads}x{dim}"]
        words += ["--with", "mask=d[i] == d[j]", "--with", "aux=d={documents}", "--with", "block_mask=128x128"]
        pairs = sum(n * n for n in lengths)
        yield Benchmark(f"{name}-documents-{way}", "Products", f"{name} bf16, D = {dim}, 16 documents", way, "TFLOP/s",
                        (10 if backward else 4) * heads * pairs * dim, words,
                        ["FlexAttention backward" if backward else "FlexAttention"], (1, length, heads, dim, lengths),
                        lengths)


RULES = {  # inputs beyond k and v, and a second list that has no last dimension
    "rwkv7": ("r w a b", ""), "dplr": ("q g a b", ""), "kda": ("q g", "beta"), "gla": ("q g", ""),
}


def recurrences():
    shapes = [("rwkv7", s) for s in ((8, 4096, 32, 64), (1, 32768, 32, 64), (1, 4096, 2, 128), (1, 8192, 96, 128),
                                     (2, 16384, 16, 128), (8, 2048, 32, 256))]
    shapes += [("dplr", (8, 4096, 32, 64)), ("dplr", (1, 4096, 2, 128)), ("kda", (8, 4096, 32, 64)),
               ("gla", (8, 4096, 32, 64))]
    for rule, (batch, length, heads, dim) in shapes:
        tensor = f"{batch}x{length}x{heads}x{dim}"
        words = []
        for name in ("k", "v", *RULES[rule][0].split()):
            words += ["--with", f"{name}={tensor}"]
        for name in RULES[rule][1].split():
            words += ["--with", f"{name}={batch}x{length}x{heads}"]
        if rule == "rwkv7":
            words += ["--with", "lower_bound=-0.6066"]
        title = f"{'RWKV7' if rule == 'rwkv7' else rule.upper()} B{batch} T{length} H{heads} D{dim}"
        for way in ("forward", "backward"):
            saves = ["--with", "saved=1" if way == "forward" else f"saved={rule}"]
            does = ["--with", f"do={tensor}"] if way == "backward" else []
            name = rule if way == "forward" else rule + "_backward"
            yield Benchmark(f"{rule}-{batch}-{length}-{heads}-{dim}-{way}", "Linear attention with a state",
                            title, way, "ms", 0,
                            [name, "--dtype", "bf16", *words, *does, *saves, "--no-check", "--samples", "7", "--batch", "5"],
                            [f"flash-linear-attention {rule} {way}"], (batch, length, heads, dim))


HOST = "First calls and sweeps"  # host times


def first_calls():
    """Compiled, assembled and loaded by a new process with an empty cache, and by another one from the cache; median of five."""
    tensor = "2x8192x16x128"
    qkv = [word for name in "qkv" for word in ("--with", f"{name}={tensor}")]
    calls = (("add", "add f32", ["add", "--dtype", "f32"]),
             ("attention", "attention bf16, D = 128", ["attention", "--dtype", "bf16", *qkv]),
             ("attention_backward", "attention bf16, D = 128, forward and backward",
              ["attention_backward", "--dtype", "bf16", *qkv, "--with", f"do={tensor}", "--with", "o=attention", "--with",
               "lse=attention"]),
             ("rwkv7", "RWKV7 bf16, D = 64, forward and backward",
              ["rwkv7_backward", "--dtype", "bf16", *(word for name in ("r", "w", "k", "v", "a", "b", "do") for word in
                                                      ("--with", f"{name}=8x4096x32x64")),
               "--with", "lower_bound=-0.6066", "--with", "saved=rwkv7"]))
    for name, what, words in calls:
        for part, measure in (("empty cache", "coldMs"), ("from disk", "diskMs")):
            yield Benchmark(f"first_call-{name}-{part.split()[-1]}", HOST, what, part, "ms", 0,
                            [*words, "--first-call", "5"], measure=measure, modelled=False)


def sweeps():
    """`kiln tune` from its start to its end, with an empty cache, whose winner is kept."""
    tensor, state = "2x8192x16x128", "8x4096x32x64"
    rwkv7 = [word for name in ("r", "w", "k", "v", "a", "b") for word in ("--with", f"{name}={state}")]
    calls = (("attention", "sweep of all 64 configurations, attention bf16, D = 128, S = 8192", "",
              ["attention", *(word for name in "qkv" for word in ("--with", f"{name}={tensor}"))]),
             ("rwkv7", "sweep of 64 configurations, RWKV7 bf16, B8 T4096 H32 D64", "forward", ["rwkv7", *rwkv7]),
             ("rwkv7_backward", "sweep of 64 configurations, RWKV7 bf16, B8 T4096 H32 D64", "backward",
              ["rwkv7_backward", *rwkv7, "--with", f"do={state}", "--with", "saved=rwkv7"]))
    for name, what, part, words in calls:
        yield Benchmark(f"sweep-{name}", HOST, what, part, "ms", 0, [*words, "--dtype", "bf16", "--budget", "64"],
                        measure="wallMs", command="tune", modelled=False)



def searches():
    """What record_sweeps.py counts."""
    found = "searches that find the best within 2 %"
    for name, what, part, unit in (
            ("repeats", found, "20 sweeps of 24 configurations of one call", "%"),
            ("replays", found, "20 replays of 20 of 200, of each of six recorded spaces", "%"),
            ("five", found, "the first five of 200, of the six", "%"),
            ("failures", "configurations that failed at a launch, of a whole space", "", ""),
            ("rejection", "rejecting a configuration before it is compiled, at most", "", "ms")):
        yield Benchmark(f"sweep-{name}", HOST, what, part, unit, 0, [], measure="figure", command="", modelled=False)


def calls():
    """What record_calls.py times: the host's part of a call, launch included."""
    tensor = "B1 S64 H2 D64"
    for name, what, part in (("operation", "an operation in Python that does nothing", ""),
                             ("softmax", "softmax f32, 64 x 256", ""),
                             ("attention-plain", f"attention bf16, {tensor}", "without gradients"),
                             ("attention-taped", f"attention bf16, {tensor}", "with"),
                             ("attention-backward", f"attention bf16, {tensor}", "and the backward call"),
                             ("rwkv7-plain", f"RWKV7 bf16, {tensor}", "without gradients"),
                             ("rwkv7-backward", f"RWKV7 bf16, {tensor}", "with, and the backward call")):
        yield Benchmark(f"call-{name}", "Host time of calls from PyTorch", what, part, "us", 0, [""], command="",
                        modelled=False)


ALL = [*memory(), *products(), *gradients(), *documents(), *decoding(), *recurrences(), *first_calls(), *sweeps(), *searches(),
       *calls()]
