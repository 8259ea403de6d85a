// kiln-bench-launch: host time of a launch of 20 arguments through a JitKernel, over a bare Kernel::launch, on a device
// that does nothing; of tensors by name; with tensor maps; and of the steps of a first call.  KILN_COMPILER names the
// compiler to use.
#include "kiln/Jit.h"
#include "runtime/jit/bench/Nanoseconds.h"
#include "runtime/jit/bench/NullDevice.h"

#include <cstdio>

using namespace kiln;

namespace {

constexpr unsigned batch = 200, batches = 2000;

/// Eight pointers, eight strides, three sizes, a float: 20 arguments, as of an attention kernel.
KernelSource source() {
  KernelSource out;
  out.name = "bench_launch";
  std::string arguments;
  const auto add = [&](const std::string &name, const std::string &type, const std::string &text, Specialise how) {
    out.arguments.push_back({name, type, how});
    arguments += (arguments.empty() ? "%" : ", %") + name + ": " + text + " {tile.name = \"" + name + "\"}";
  };
  for (unsigned i = 0; i < 8; ++i)
    add("p" + std::to_string(i), "ptr<f32>", "!tile.ptr<f32>", Specialise::Divisibility);
  for (unsigned i = 0; i < 8; ++i)
    add("stride" + std::to_string(i), "i64", "i64", Specialise::Stride);
  for (unsigned i = 0; i < 3; ++i)
    add("n" + std::to_string(i), "i32", "i32", Specialise::None);
  add("scale", "f32", "f32", Specialise::None);
  out.programText = "module {\n  func.func @bench_launch(" + arguments +
                    ") attributes {tile.kernel, tile.num_warps = 4 : i32} {\n    return\n  }\n}\n";
  return out;
}

/// Four tensors of four dimensions and four numbers: 40 arguments.
KernelSource tensorSource() {
  KernelSource out;
  out.name = "bench_named";
  std::string arguments;
  using Role = TensorPart::Role;
  const auto add = [&](const std::string &name, const std::string &type, const std::string &text, Specialise how,
                       std::optional<TensorPart> part) {
    out.arguments.push_back({name, type, how, 1, part});
    arguments += (arguments.empty() ? "%" : ", %") + name + ": " + text + " {tile.name = \"" + name + "\"}";
  };
  for (const std::string tensor : {"q", "k", "v", "o"}) {
    add(tensor, "ptr<f32>", "!tile.ptr<f32>", Specialise::Divisibility, TensorPart{tensor, Role::Pointer, 0, 4});
    for (const auto &[role, how] : {std::pair(Role::Extent, Specialise::None), {Role::Stride, Specialise::Stride}})
      for (std::uint8_t d = 0; d < 4; ++d)
        add(tensor + (role == Role::Extent ? "_extent_" : "_stride_") + std::to_string(d), "i64", "i64", how,
            TensorPart{tensor, role, d, 4});
  }
  for (unsigned i = 0; i < 3; ++i)
    add("n" + std::to_string(i), "i32", "i32", Specialise::None, {});
  add("scale", "f32", "f32", Specialise::None, {});
  out.programText = "module {\n  func.func @bench_named(" + arguments +
                    ") attributes {tile.kernel, tile.num_warps = 4 : i32} {\n    return\n  }\n}\n";
  return out;
}

/// Four pointers, a size, a stride, and a tensor map of each pointer.
KernelSource mapSource() {
  KernelSource out;
  out.name = "bench_maps";
  std::string arguments, maps;
  for (unsigned i = 0; i < 4; ++i) {
    const std::string number = std::to_string(i);
    out.arguments.push_back({"p" + number, "ptr<f32>", Specialise::Divisibility});
    arguments += "%p" + number + ": !tile.ptr<f32>, ";
    maps +=
        ", %m" + number +
        ": !tile_gpu.tensor_map {tile_gpu.tensor_map = #tile_gpu.tensor_map<element = \"f32\", address = " + number +
        ", extents = ()[s0, s1, s2, s3, s4] -> (64, s4), strides = ()[s0, s1, s2, s3, s4, s5] -> (s5 * 4), "
        "box = [64, 64]>}";
  }
  out.arguments.push_back({"n", "i32", Specialise::None});
  out.arguments.push_back({"stride", "i64", Specialise::None});
  out.programText = "func.func @bench_maps(" + arguments + "%n: i32, %stride: i64" + maps +
                    ") attributes {tile.kernel, tile.num_warps = 4 : i32} {\n  return\n}\n";
  return out;
}

/// What the emulator takes to encode a tensor map; 0 if it cannot.
double encodingNs() {
  Result<std::unique_ptr<Device>> emulator = openDevice("emulator:sm_90a");
  if (!emulator)
    return 0;
  TensorMapRecipe recipe;
  recipe.rank = 2;
  recipe.dims = {64, 1000};
  recipe.box = {64, 64};
  recipe.setDenseStrides();
  bool failed = false;
  const double ns = nanoseconds(batches, batch, [&] {
    recipe.address += 16;
    failed |= !(*emulator)->encodeTensorMap(recipe).ok();
  });
  return failed ? 0 : ns;
}

int fail(const Status &s) {
  std::fprintf(stderr, "kiln-bench-launch: %s\n", s.toString().c_str());
  return s.exitCode();
}

} // namespace

int main() {
  NullDevice device;
  Result<std::unique_ptr<Jit>> jit = Jit::create(device);
  if (!jit)
    return fail(jit.status());
  Result<JitKernel *> kernel = (*jit)->kernel(source());
  if (!kernel)
    return fail(kernel.status());
  JitKernel &jk = **kernel;
  NullBuffer buffer(4096);
  const std::int64_t one = 1, stride = 4096;
  const std::int32_t n = 1000;
  const auto launch = [&] {
    return jk.launch({4, 2}, nullptr, buffer, buffer, buffer, buffer, buffer, buffer, buffer, buffer, one, stride, one,
                     stride, one, stride, one, stride, n, n, n, 0.5f);
  };
  LaunchArguments arguments;
  for (unsigned i = 0; i < 8; ++i)
    arguments.add(buffer);
  for (unsigned i = 0; i < 4; ++i)
    arguments.add(one).add(stride);
  arguments.add(n).add(n).add(n).add(0.5f);
  const Result<const LoadedKernel *> loaded = jk.prepare(arguments.view());
  if (!loaded)
    return fail(loaded.status());
  Kernel &bare = (*loaded)->function();
  LaunchConfig config;
  config.grid = {4, 2};
  config.block = {128};
  const ArgumentView view = arguments.view();
  bool failed = false;
  const double bareNs =
      nanoseconds(batches, batch, [&] { failed |= !bare.launch(config, {view.data, view.bytes}).ok(); });
  const double typedNs = nanoseconds(batches, batch, [&] { failed |= !launch().ok(); });
  const double builtNs = nanoseconds(batches, batch, [&] { failed |= !jk.launch({4, 2}, nullptr, view).ok(); });
  const double hitNs = nanoseconds(batches, batch, [&] { failed |= !jk.prepare(view).ok(); });
  Result<JitKernel *> withTensors = (*jit)->kernel(tensorSource());
  if (!withTensors)
    return fail(withTensors.status());
  const Result<Tensor> tensor = Tensor::dense(device, buffer, DType::F32, {1, 8, 8, 16});
  if (!tensor)
    return fail(tensor.status());
  const Tensor &t = *tensor;
  const auto byName = [&] {
    return (*withTensors)
        ->launch({4, 2}, nullptr, named<"q">(t), named<"k">(t), named<"v">(t), named<"o">(t), named<"n0">(n),
                 named<"n1">(n), named<"n2">(n), named<"scale">(0.5f));
  };
  if (Status s = byName(); !s.ok())
    return fail(s);
  const double namedNs = nanoseconds(batches, batch, [&] { failed |= !byName().ok(); });
  Result<JitKernel *> withMaps = (*jit)->kernel(mapSource());
  if (!withMaps)
    return fail(withMaps.status());
  const auto mapped = [&] { return (*withMaps)->launch({4, 2}, nullptr, buffer, buffer, buffer, buffer, n, stride); };
  if (Status s = mapped(); !s.ok())
    return fail(s);
  const double mappedNs = nanoseconds(batches, batch, [&] { failed |= !mapped().ok(); });
  if (failed)
    return fail(Status(StatusCode::Internal, "a launch failed"));
  std::printf("first call                    %s\n", (*loaded)->report().toString().c_str());
  std::printf("bare Kernel::launch           %8.1f ns\n", bareNs);
  std::printf("launch, 20 typed arguments    %8.1f ns   over bare %8.1f ns   (target 1000)\n", typedNs,
              typedNs - bareNs);
  std::printf("launch, 20 packed arguments   %8.1f ns   over bare %8.1f ns\n", builtNs, builtNs - bareNs);
  std::printf("launch, 4 tensors, 4 numbers  %8.1f ns   over bare %8.1f ns   (by name, 40 arguments)\n", namedNs,
              namedNs - bareNs);
  std::printf("launch, 4 known tensor maps   %8.1f ns   over bare %8.1f ns   (6 arguments)\n", mappedNs,
              mappedNs - bareNs);
  std::printf("the emulator encodes a map    %8.1f ns\n", encodingNs());
  std::printf("in-memory hit (prepare)       %8.1f ns   (target 1000)\n", hitNs);
  return 0;
}
