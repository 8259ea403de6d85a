//===- SwappingDevice.h - A device that shows what it loads, or loads something else ===//
#ifndef KILN_TESTS_KERNELS_SWAPPINGDEVICE_H
#define KILN_TESTS_KERNELS_SWAPPINGDEVICE_H

#include "kiln/Device.h"

#include <map>
#include <string>
#include <vector>

namespace kiln::test {

class SwappingDevice final : public Device {
public:
  /// Loads `swaps[text]` instead of a text that is there; adds every text that it is given to `seen`, unless null.
  SwappingDevice(std::unique_ptr<Device> inner, std::map<std::string, std::string> swaps,
                 std::vector<std::string> *seen)
      : inner(std::move(inner)), swaps(std::move(swaps)), seen(seen) {}
  const DeviceInfo &info() const override { return inner->info(); }
  Result<std::unique_ptr<Buffer>> allocate(std::size_t bytes, std::string_view label) override {
    return inner->allocate(bytes, label);
  }
  Result<std::unique_ptr<Stream>> createStream() override { return inner->createStream(); }
  Result<std::unique_ptr<Event>> createEvent() override { return inner->createEvent(); }
  Stream &defaultStream() override { return inner->defaultStream(); }
  Result<std::unique_ptr<Module>> loadPtx(std::string_view text, std::string_view fileName) override {
    if (seen)
      seen->emplace_back(text);
    const auto swap = swaps.find(std::string(text));
    return inner->loadPtx(swap == swaps.end() ? text : std::string_view(swap->second), fileName);
  }
  Result<std::unique_ptr<Module>> loadCubin(std::span<const std::byte> image) override {
    return inner->loadCubin(image);
  }
  Result<TensorMap> encodeTensorMap(const TensorMapRecipe &recipe) override { return inner->encodeTensorMap(recipe); }
  std::vector<Finding> takeFindings() override { return inner->takeFindings(); }
  LaunchStatistics takeStatistics() override { return inner->takeStatistics(); }

private:
  std::unique_ptr<Device> inner;
  std::map<std::string, std::string> swaps;
  std::vector<std::string> *seen;
};

} // namespace kiln::test

#endif // KILN_TESTS_KERNELS_SWAPPINGDEVICE_H
