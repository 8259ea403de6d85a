//===- NullDevice.h - A device that does nothing --------------------------===//
//
// For the cost of everything around a launch, and for tests of it: memory is host memory, a launch only counts, a
// stream captures or fails when told to.  Says of itself what the caller wants, by default an sm_90a GPU.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_JIT_BENCH_NULLDEVICE_H
#define KILN_RUNTIME_JIT_BENCH_NULLDEVICE_H

#include "kiln/Device.h"

#include <atomic>
#include <cstring>

namespace kiln {

class NullStream final : public Stream {
public:
  Status synchronize() override {
    ++synchronized;
    return failure;
  }
  void *native() const override { return nullptr; }
  bool isCapturing() const override { return capturing; }

  bool capturing = false;
  Status failure;
  unsigned synchronized = 0;
};

class NullKernel final : public Kernel {
public:
  explicit NullKernel(std::string name) { about.name = std::move(name); }
  const KernelInfo &info() const override { return about; }
  Status launch(const LaunchConfig &config, std::span<const std::byte> arguments) override {
    ++launches;
    last = config;
    if (!arguments.empty())
      std::memcpy(lastArguments, arguments.data(), std::min(arguments.size(), sizeof lastArguments));
    return {};
  }

  KernelInfo about;
  std::atomic<std::uint64_t> launches{0};
  LaunchConfig last;
  std::byte lastArguments[256] = {};
};

class NullModule final : public Module {
public:
  Result<Kernel *> kernel(std::string_view name) override {
    if (!only)
      only = std::make_unique<NullKernel>(std::string(name));
    return static_cast<Kernel *>(only.get());
  }
  std::vector<std::string> kernelNames() const override { return {}; }

private:
  std::unique_ptr<NullKernel> only;
};

class NullBuffer final : public Buffer {
public:
  explicit NullBuffer(std::size_t bytes) : bytes(bytes), memory(new (std::align_val_t(256)) std::byte[bytes + 1]) {}
  ~NullBuffer() override { ::operator delete[](memory, std::align_val_t(256)); }
  DeviceAddress address() const override { return reinterpret_cast<DeviceAddress>(memory); }
  std::size_t size() const override { return bytes; }
  Status copyFromHost(std::size_t, std::span<const std::byte>) override { return {}; }
  Status copyToHost(std::size_t, std::span<std::byte>) const override { return {}; }
  Status fill(std::byte) override { return {}; }

private:
  std::size_t bytes;
  std::byte *memory;
};

class NullDevice final : public Device {
public:
  NullDevice() {
    about.name = "null:0";
    about.description = "no device";
    about.target = *findTarget("sm_90a");
    about.sm = 90;
    about.driver = "CUDA 13.0";
    about.kind = DeviceKind::Emulator;
  }
  const DeviceInfo &info() const override { return about; }
  Result<std::unique_ptr<Buffer>> allocate(std::size_t bytes, std::string_view) override {
    ++allocations;
    return std::unique_ptr<Buffer>(std::make_unique<NullBuffer>(bytes));
  }
  Result<std::unique_ptr<Stream>> createStream() override {
    return std::unique_ptr<Stream>(std::make_unique<NullStream>());
  }
  Result<std::unique_ptr<Event>> createEvent() override {
    return Status(StatusCode::Unsupported, "the null device has no events");
  }
  Stream &defaultStream() override { return stream; }
  Result<std::unique_ptr<Module>> loadPtx(std::string_view, std::string_view) override { return load(); }
  Result<std::unique_ptr<Module>> loadCubin(std::span<const std::byte>) override {
    ++cubins;
    return load();
  }

  /// The recipe's numbers, one after the other.
  Result<TensorMap> encodeTensorMap(const TensorMapRecipe &r) override {
    ++tensorMaps;
    KILN_TRY(checkTensorMap(r));
    if (failTensorMaps) {
      --failTensorMaps;
      return Status(StatusCode::DeviceError, "the null device was told to make no map");
    }
    TensorMap map;
    std::memcpy(map.bytes.data(), &r.address, 8);
    std::memcpy(map.bytes.data() + 8, r.dims.data(), 8 * r.dims.size());
    std::memcpy(map.bytes.data() + 48, r.strides.data(), 8 * r.strides.size());
    return map;
  }

  DeviceInfo about{};
  NullStream stream;
  unsigned allocations = 0, failLoads = 0, failTensorMaps = 0, cubins = 0;
  std::atomic<unsigned> tensorMaps{0};

private:
  Result<std::unique_ptr<Module>> load() {
    if (failLoads) {
      --failLoads;
      return Status(StatusCode::DeviceError, "the null device was told to refuse this module");
    }
    return std::unique_ptr<Module>(std::make_unique<NullModule>());
  }
};

} // namespace kiln

#endif // KILN_RUNTIME_JIT_BENCH_NULLDEVICE_H
