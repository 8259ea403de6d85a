#include "runtime/device/offline/OfflineDevice.h"

#include "runtime/device/Multiprocessors.h"
#include "support/ParseNumber.h"

#include <atomic>

namespace kiln {
namespace {

Status refuse(const std::string &device, const char *what) {
  return {StatusCode::Unsupported, device + " compiles and " + what,
          "use a device that runs kernels: cuda:N or emulator:TARGET"};
}

class OfflineStream final : public Stream {
public:
  Status synchronize() override { return {}; }
  void *native() const override { return nullptr; }
};

class OfflineBuffer final : public Buffer {
public:
  OfflineBuffer(const DeviceInfo &device, DeviceAddress at, std::size_t bytes) : device(device), at(at), bytes(bytes) {}
  DeviceAddress address() const override { return at; }
  std::size_t size() const override { return bytes; }
  Status copyFromHost(std::size_t, std::span<const std::byte>) override { return hasNone(); }
  Status copyToHost(std::size_t, std::span<std::byte>) const override { return hasNone(); }
  Status fill(std::byte) override { return hasNone(); }

private:
  Status hasNone() const { return refuse(device.name, "has no memory"); }
  const DeviceInfo &device;
  DeviceAddress at;
  std::size_t bytes;
};

class OfflineKernel final : public Kernel {
public:
  OfflineKernel(const DeviceInfo &device, std::string name) : device(device) { about.name = std::move(name); }
  const KernelInfo &info() const override { return about; }
  Status launch(const LaunchConfig &, std::span<const std::byte>) override {
    return refuse(device.name, "runs nothing");
  }

private:
  const DeviceInfo &device;
  KernelInfo about;
};

class OfflineModule final : public Module {
public:
  explicit OfflineModule(const DeviceInfo &device) : device(device) {}
  Result<Kernel *> kernel(std::string_view name) override {
    if (!only)
      only = std::make_unique<OfflineKernel>(device, std::string(name));
    return static_cast<Kernel *>(only.get());
  }
  std::vector<std::string> kernelNames() const override { return {}; }

private:
  const DeviceInfo &device;
  std::unique_ptr<OfflineKernel> only;
};

class OfflineDevice final : public Device {
public:
  OfflineDevice(std::string_view name, const Target &target, unsigned multiprocessors) {
    about.kind = DeviceKind::Cuda;
    about.name = name;
    about.description = "no GPU";
    about.target = &target;
    about.sm = target.sm;
    about.multiprocessors = multiprocessors;
  }
  const DeviceInfo &info() const override { return about; }
  Result<std::unique_ptr<Buffer>> allocate(std::size_t bytes, std::string_view) override {
    // Nobody is given the same addresses twice: operations compare tensors by them.
    constexpr std::uint64_t alignment = 512;
    const std::uint64_t step = (bytes / alignment + 1) * alignment;
    return std::unique_ptr<Buffer>(std::make_unique<OfflineBuffer>(about, next.fetch_add(step), bytes));
  }
  Result<std::unique_ptr<Stream>> createStream() override {
    return std::unique_ptr<Stream>(std::make_unique<OfflineStream>());
  }
  Result<std::unique_ptr<Event>> createEvent() override { return refuse(about.name, "has no events"); }
  Stream &defaultStream() override { return stream; }
  /// What no assembler of the host served a GPU's driver assembles.
  Result<std::unique_ptr<Module>> loadPtx(std::string_view, std::string_view) override { return module(); }
  Result<std::unique_ptr<Module>> loadCubin(std::span<const std::byte>) override { return module(); }

private:
  std::unique_ptr<Module> module() { return std::make_unique<OfflineModule>(about); }
  DeviceInfo about{};
  OfflineStream stream;
  std::atomic<std::uint64_t> next{std::uint64_t(1) << 32};
};

} // namespace

Result<std::unique_ptr<Device>> openOffline(std::string_view name) {
  const std::string_view what = name.substr(name.find(':') + 1);
  const std::size_t colon = what.find(':');
  KILN_ASSIGN(const Target *target, findTarget(what.substr(0, colon)));
  unsigned multiprocessors = multiprocessorsOf(*target);
  if (colon != what.npos) {
    constexpr unsigned most = 4096;
    const std::optional<unsigned> given = parseNumber<unsigned>(what.substr(colon + 1));
    if (!given || *given == 0 || *given > most)
      return Status::invalid("device '" + std::string(name) + "': '" + std::string(what.substr(colon + 1)) +
                                 "' is no number of multiprocessors",
                             "write offline:TARGET, or offline:TARGET:N with N from 1 to " + std::to_string(most));
    multiprocessors = *given;
  }
  return std::unique_ptr<Device>(std::make_unique<OfflineDevice>(name, *target, multiprocessors));
}

} // namespace kiln
