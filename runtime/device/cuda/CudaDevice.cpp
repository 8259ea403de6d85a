#include "runtime/device/cuda/CudaDevice.h"

#include "runtime/device/cuda/CudaContext.h"
#include "runtime/device/cuda/CudaModule.h"
#include "support/Text.h"

namespace kiln::cuda {

namespace {

using ContextPointer = std::shared_ptr<CudaContext>;

class CudaStream final : public Stream {
public:
  /// `owned`: made here, and destroyed with this.
  CudaStream(ContextPointer context, StreamHandle stream, bool owned)
      : context(std::move(context)), stream(stream), owned(owned) {}
  ~CudaStream() override {
    if (!owned)
      return;
    const ContextScope scope(*context);
    context->driver().streamDestroy(stream);
  }
  Status synchronize() override {
    const ContextScope scope(*context);
    KILN_TRY(scope.status());
    return context->check(context->driver().streamSynchronize(stream), "waiting for a stream (cuStreamSynchronize)");
  }
  void *native() const override { return stream; }
  ContextHandle place() const { return context->handle(); }
  bool isCapturing() const override {
    const Driver &driver = context->driver();
    const ContextScope scope(*context);
    int status = 0;
    if (!driver.streamIsCapturing || !scope.status().ok())
      return false;
    const ErrorCode error = driver.streamIsCapturing(stream, &status);
    // The default stream answers so while another stream captures: it may do nothing then.
    return error == errorCaptureImplicit || (error == 0 && status != 0);
  }

private:
  ContextPointer context;
  StreamHandle stream;
  bool owned;
};

/// Page-locked.
class CudaHostMemory final : public HostMemory {
public:
  CudaHostMemory(ContextPointer context, void *memory, std::size_t count)
      : context(std::move(context)), memory(memory), count(count) {}
  ~CudaHostMemory() override {
    if (!memory)
      return;
    const ContextScope scope(*context);
    context->driver().memFreeHost(memory);
  }
  std::span<std::byte> bytes() override { return {static_cast<std::byte *>(memory), count}; }

private:
  ContextPointer context;
  void *memory;
  std::size_t count;
};

class CudaEvent final : public Event {
public:
  CudaEvent(ContextPointer context, EventHandle event) : context(std::move(context)), event(event) {}
  ~CudaEvent() override {
    const ContextScope scope(*context);
    context->driver().eventDestroy(event);
  }
  Status record(Stream &stream) override {
    const ContextScope scope(*context);
    KILN_TRY(scope.status());
    return context->check(context->driver().eventRecord(event, static_cast<StreamHandle>(stream.native())),
                          "recording an event (cuEventRecord)");
  }
  Status synchronize() override {
    const ContextScope scope(*context);
    KILN_TRY(scope.status());
    return context->check(context->driver().eventSynchronize(event), "waiting for an event (cuEventSynchronize)");
  }
  Result<double> millisecondsSince(const Event &earlier) const override {
    const auto *start = dynamic_cast<const CudaEvent *>(&earlier);
    if (!start || start->context != context)
      return Status::invalid("the two events belong to different devices", "record both on one device");
    const ContextScope scope(*context);
    KILN_TRY(scope.status());
    float milliseconds = 0;
    const ErrorCode error = context->driver().eventElapsedTime(&milliseconds, start->event, event);
    if (error == errorNotReady)
      return Status::invalid("an event has not completed yet", "synchronize with the later event first");
    KILN_TRY(context->check(error, "the time between two events (cuEventElapsedTime)"));
    return static_cast<double>(milliseconds);
  }

private:
  ContextPointer context;
  EventHandle event;
};

class CudaBuffer final : public Buffer {
public:
  CudaBuffer(ContextPointer context, DeviceAddress base, std::size_t bytes, std::string label)
      : context(std::move(context)), base(base), bytes(bytes), label(std::move(label)) {}
  ~CudaBuffer() override {
    if (!base)
      return;
    const ContextScope scope(*context);
    context->driver().memFree(base);
  }
  DeviceAddress address() const override { return base; }
  std::size_t size() const override { return bytes; }

  Status copyFromHost(std::size_t offset, std::span<const std::byte> data) override {
    KILN_TRY(checkRange("a copy to", offset, data.size()));
    if (data.empty())
      return {};
    const ContextScope scope(*context);
    KILN_TRY(scope.status());
    KILN_TRY(context->check(context->driver().memcpyHtoD(base + offset, data.data(), data.size()),
                            what("copying to", data.size(), "cuMemcpyHtoD")));
    // From pageable memory the copy may still be on its way from the driver's staging buffer.
    return finish("copying to", data.size());
  }
  Status copyToHost(std::size_t offset, std::span<std::byte> data) const override {
    KILN_TRY(checkRange("a copy from", offset, data.size()));
    if (data.empty())
      return {};
    const ContextScope scope(*context);
    KILN_TRY(scope.status());
    return context->check(context->driver().memcpyDtoH(data.data(), base + offset, data.size()),
                          what("copying from", data.size(), "cuMemcpyDtoH"));
  }
  Status copyFromHostAsync(std::size_t offset, std::span<const std::byte> data, Stream &stream) override {
    KILN_TRY(checkRange("a copy to", offset, data.size()));
    if (data.empty())
      return {};
    const ContextScope scope(*context);
    KILN_TRY(scope.status());
    return context->check(context->driver().memcpyHtoDAsync(base + offset, data.data(), data.size(),
                                                            static_cast<StreamHandle>(stream.native())),
                          what("copying to", data.size(), "cuMemcpyHtoDAsync"));
  }
  Status copyToHostAsync(std::size_t offset, std::span<std::byte> data, Stream &stream) const override {
    KILN_TRY(checkRange("a copy from", offset, data.size()));
    if (data.empty())
      return {};
    const ContextScope scope(*context);
    KILN_TRY(scope.status());
    return context->check(context->driver().memcpyDtoHAsync(data.data(), base + offset, data.size(),
                                                            static_cast<StreamHandle>(stream.native())),
                          what("copying from", data.size(), "cuMemcpyDtoHAsync"));
  }
  Status fill(std::byte value) override {
    if (!bytes)
      return {};
    const ContextScope scope(*context);
    KILN_TRY(scope.status());
    KILN_TRY(context->check(context->driver().memsetD8(base, static_cast<unsigned char>(value), bytes),
                            what("filling", bytes, "cuMemsetD8")));
    return finish("filling", bytes);
  }

  Status copyFrom(const Buffer &source, Stream *stream) override {
    if (source.size() < bytes)
      return Status::invalid(what("copying to", bytes, "cuMemcpyDtoDAsync") + ": the source has " +
                             std::to_string(source.size()) + " bytes");
    if (!bytes)
      return {};
    const ContextScope scope(*context);
    KILN_TRY(scope.status());
    return context->check(
        context->driver().memcpyDtoDAsync(base, source.address(), bytes, stream ? stream->native() : nullptr),
        what("copying to", bytes, "cuMemcpyDtoDAsync"));
  }

private:
  std::string what(const char *verb, std::size_t count, const char *function) const {
    return std::string(verb) + " " + label + ", " + std::to_string(count) + " bytes (" + function + ")";
  }
  Status finish(const char *verb, std::size_t count) const {
    return context->check(context->driver().streamSynchronize(nullptr), what(verb, count, "cuStreamSynchronize"));
  }
  Status checkRange(const char *verb, std::size_t offset, std::size_t count) const {
    if (offset <= bytes && count <= bytes - offset)
      return {};
    return Status::invalid(std::string(verb) + " " + label + " of " + std::to_string(count) + " bytes at offset " +
                               std::to_string(offset) + " does not fit its " + std::to_string(bytes) + " bytes",
                           "allocate a larger buffer or copy less");
  }

  ContextPointer context;
  DeviceAddress base;
  std::size_t bytes;
  std::string label; ///< "buffer" or "buffer 'x'"
};

class CudaDevice final : public Device {
public:
  explicit CudaDevice(ContextPointer context)
      : context(std::move(context)), nullStream(this->context, nullptr, false) {}

  const DeviceInfo &info() const override { return context->info(); }
  Result<GpuFacts> facts() const { return context->facts(); }

  Result<std::unique_ptr<Buffer>> allocate(std::size_t bytes, std::string_view label) override {
    std::string name = label.empty() ? "buffer" : "buffer '" + std::string(label) + "'";
    DeviceAddress address = 0;
    if (bytes) {
      const ContextScope scope(*context);
      KILN_TRY(scope.status());
      KILN_TRY(context->check(context->driver().memAlloc(&address, bytes),
                              "allocating " + name + " of " + std::to_string(bytes) + " bytes (cuMemAlloc)"));
    }
    return std::unique_ptr<Buffer>(std::make_unique<CudaBuffer>(context, address, bytes, std::move(name)));
  }

  Result<std::unique_ptr<Stream>> createStream() override {
    const ContextScope scope(*context);
    KILN_TRY(scope.status());
    StreamHandle stream = nullptr;
    // Flags 0: ordered with the default stream, on which Buffer copies run.
    KILN_TRY(context->check(context->driver().streamCreate(&stream, 0), "making a stream (cuStreamCreate)"));
    return std::unique_ptr<Stream>(std::make_unique<CudaStream>(context, stream, true));
  }

  Result<std::unique_ptr<Stream>> streamOf(void *native) override {
    const auto stream = static_cast<StreamHandle>(native);
    const Driver &driver = context->driver();
    // The default streams, CUDA's handles 0 to 2, are those of the context that is current.
    if (reinterpret_cast<std::uintptr_t>(native) > 2 && driver.streamGetCtx) {
      const ContextScope scope(*context);
      KILN_TRY(scope.status());
      ContextHandle owner = nullptr;
      KILN_TRY(context->check(driver.streamGetCtx(stream, &owner), "the context of a given stream (cuStreamGetCtx)"));
      if (owner != context->handle())
        return Status::invalid("the given stream belongs to another context than " + context->info().name +
                                   " of this Device",
                               "make the Device over the stream's context: kiln::deviceOf(context)");
    }
    return std::unique_ptr<Stream>(std::make_unique<CudaStream>(context, stream, false));
  }
  void *native() const override { return context->handle(); }

  Result<std::unique_ptr<HostMemory>> allocateHost(std::size_t bytes) override {
    void *memory = nullptr;
    if (bytes) {
      const ContextScope scope(*context);
      KILN_TRY(scope.status());
      KILN_TRY(
          context->check(context->driver().memHostAlloc(&memory, bytes, 0),
                         "allocating page-locked host memory of " + std::to_string(bytes) + " bytes (cuMemHostAlloc)"));
    }
    return std::unique_ptr<HostMemory>(std::make_unique<CudaHostMemory>(context, memory, bytes));
  }

  Result<std::unique_ptr<Event>> createEvent() override {
    const ContextScope scope(*context);
    KILN_TRY(scope.status());
    EventHandle event = nullptr;
    KILN_TRY(context->check(context->driver().eventCreate(&event, 0), "making an event (cuEventCreate)"));
    return std::unique_ptr<Event>(std::make_unique<CudaEvent>(context, event));
  }

  Stream &defaultStream() override { return nullStream; }

  Result<std::unique_ptr<Module>> loadPtx(std::string_view text, std::string_view fileName) override {
    return loadPtxModule(context, text, fileName);
  }
  Result<std::unique_ptr<Module>> loadCubin(std::span<const std::byte> image) override {
    return loadCubinModule(context, image);
  }

  Result<TensorMap> encodeTensorMap(const TensorMapRecipe &r) override {
    KILN_TRY(checkTensorMap(r));
    const Driver &driver = context->driver();
    if (const DeviceInfo &gpu = context->info(); gpu.sm < 90)
      return Status(StatusCode::Unsupported, gpu.name + " has no tensor copies", "they exist from sm_90 on");
    if (!driver.tensorMapEncodeTiled)
      return Status(StatusCode::Unsupported, "the CUDA driver (" + driver.versionText() + ") makes no tensor maps",
                    "install driver 525 or newer");
    const ContextScope scope(*context);
    KILN_TRY(scope.status());
    TensorMap map;
    const ErrorCode error = driver.tensorMapEncodeTiled(
        map.bytes.data(), static_cast<int>(r.type), r.rank, reinterpret_cast<void *>(r.address), r.dims.data(),
        r.strides.data(), r.box.data(), r.elementStrides.data(), static_cast<int>(r.interleave),
        static_cast<int>(r.swizzle), static_cast<int>(r.promotion), static_cast<int>(r.fill));
    KILN_TRY(context->check(error, "making a tensor map of " + std::string(tensorMapTypeName(r.type)) + ", rank " +
                                       std::to_string(r.rank) + ", swizzle " +
                                       std::string(tensorMapSwizzleName(r.swizzle)) + " (cuTensorMapEncodeTiled)"));
    return map;
  }

private:
  ContextPointer context;
  CudaStream nullStream;
};

} // namespace

bool takes(const CudaContext &context, const Stream &stream) {
  const auto *own = dynamic_cast<const CudaStream *>(&stream); // others wrap a stream that they must know
  return !own || own->place() == context.handle();
}

Result<std::unique_ptr<Device>> createCudaDevice(std::shared_ptr<const Driver> driver, int ordinal) {
  KILN_ASSIGN(ContextPointer context, CudaContext::create(std::move(driver), ordinal));
  return std::unique_ptr<Device>(std::make_unique<CudaDevice>(std::move(context)));
}

Result<std::unique_ptr<Device>> createCudaDevice(std::shared_ptr<const Driver> driver, ContextHandle existing) {
  KILN_ASSIGN(ContextPointer context, CudaContext::adopt(std::move(driver), existing));
  return std::unique_ptr<Device>(std::make_unique<CudaDevice>(std::move(context)));
}

Result<GpuFacts> factsOf(const Device &device) {
  const auto *gpu = dynamic_cast<const CudaDevice *>(&device);
  if (!gpu)
    return Status(StatusCode::Unsupported, device.info().name + " is no GPU", "name one: cuda:N");
  return gpu->facts();
}

std::vector<DeviceInfo> listCudaDevices(const Driver &driver, std::vector<std::string> &notes) {
  std::vector<DeviceInfo> out;
  int count = 0;
  if (Status s = driver.check(driver.deviceGetCount(&count), "cuDeviceGetCount"); !s.ok()) {
    notes.push_back(s.toString());
    return out;
  }
  if (count == 0)
    notes.emplace_back("the CUDA driver (" + driver.versionText() + ") lists no GPU");
  for (int i = 0; i < count; ++i) {
    Result<DeviceInfo> info = describeDevice(driver, i);
    if (info)
      out.push_back(std::move(*info));
    else
      notes.push_back(info.status().toString());
  }
  return out;
}

} // namespace kiln::cuda
