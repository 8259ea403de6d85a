//===- KernelArguments.h - The --arg values of `kiln run` -----------------===//
//
// An argument is parsed first (files are read then), checked against the kernel's parameter second, bound to a device
// third.  Every message names the argument by its number and its text, and the parameter it meets.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_TOOLS_KERNELARGUMENTS_H
#define KILN_RUNTIME_TOOLS_KERNELARGUMENTS_H

#include "kiln/Device.h"
#include "runtime/io/Npy.h"

namespace kiln::tools {

struct KernelArgument {
  enum class Kind : std::uint8_t {
    Scalar, ///< bytes: the value
    Input,  ///< array: a buffer that starts with a file's data
    Output, ///< array.type and shape: a buffer that starts poisoned
    Bytes,  ///< array: a file's data by value
  };
  Kind kind = Kind::Scalar;
  unsigned index = 0;     ///< from 0
  std::string text;       ///< as written
  bool isAddress = false; ///< Scalar: ptr:V
  DType type = DType::U64;
  std::vector<std::byte> bytes;
  Array array; ///< Output: data stays empty
  std::uint64_t bufferBytes = 0;

  bool isBuffer() const { return kind == Kind::Input || kind == Kind::Output; }
  std::string name() const { return "argument " + std::to_string(index) + " ('" + text + "')"; }
};

Result<KernelArgument> parseArgument(unsigned index, const std::string &text);

/// "add(u64 x, u64 y, u32 n)".
std::string signature(const KernelInfo &kernel);

/// Number, sizes and types.
Status checkArguments(const std::vector<KernelArgument> &arguments, const KernelInfo &kernel);

/// The arguments on a device: buffers, and the packed bytes that a launch takes.
struct BoundArguments {
  std::vector<std::unique_ptr<Buffer>> buffers; ///< one an argument; nullptr for values
  std::vector<std::byte> packed;

  static Result<BoundArguments> bind(Device &device, const std::vector<KernelArgument> &arguments,
                                     const KernelInfo &kernel);
  /// The buffer's contents as they are now.
  Result<Array> read(const KernelArgument &argument) const;
};

} // namespace kiln::tools

#endif // KILN_RUNTIME_TOOLS_KERNELARGUMENTS_H
