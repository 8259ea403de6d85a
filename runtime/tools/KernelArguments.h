//===- KernelArguments.h - The --arg and --buffer values of `kiln run` ----===//
//
// An argument is parsed first (files are read then), checked against the kernel's parameter second, bound to a device
// third.  Every message names the argument by its number and its text, and the parameter it meets.
//
// Some arguments refer to the buffers of others: pointers into them, tensor maps over them, structs with either inside.
// A buffer that is no parameter has a name (--buffer NAME=..).  All are parsed together, so a reference that leads
// nowhere is refused before anything runs.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_TOOLS_KERNELARGUMENTS_H
#define KILN_RUNTIME_TOOLS_KERNELARGUMENTS_H

#include "kiln/Device.h"
#include "runtime/io/Npy.h"

namespace kiln::tools {

struct KernelArgument {
  enum class Kind : std::uint8_t {
    Scalar,    ///< bytes: the value
    Input,     ///< array: a buffer that starts with a file's data
    Output,    ///< array.type and shape: a buffer that starts poisoned, or with zeros
    Bytes,     ///< array: a file's data by value
    Pointer,   ///< into the buffer `target`
    TensorMap, ///< map, over the buffer `target`
    Struct,    ///< bytes, with the values of `pieces` in them
  };
  Kind kind = Kind::Scalar;
  unsigned index = 0;     ///< from 0; buffers that are no parameters come after the parameters
  std::string text;       ///< as written
  std::string label;      ///< name of a buffer that is no parameter
  bool isAddress = false; ///< Scalar: ptr:V
  bool zeros = false;     ///< Output
  DType type = DType::U64;
  std::vector<std::byte> bytes;
  Array array; ///< Output: data stays empty
  std::uint64_t bufferBytes = 0;
  std::string reference;    ///< Pointer, TensorMap: number of an argument or name of a buffer
  unsigned target = 0;      ///< its index
  std::uint64_t offset = 0; ///< bytes from the start of the buffer that is pointed into, the own one or `target`
  TensorMapRecipe map;      ///< without the address
  std::uint64_t place = 0;  ///< of a piece: bytes from the start of the struct
  std::vector<KernelArgument> pieces;

  bool isBuffer() const { return kind == Kind::Input || kind == Kind::Output; }
  /// Whether the kernel gets an address of device memory.
  bool isPointer() const { return isBuffer() || kind == Kind::Pointer || isAddress; }
  bool isParameter() const { return label.empty(); }
  std::string name() const {
    return (label.empty() ? "argument " + std::to_string(index) : "buffer '" + label + "'") + " ('" + text + "')";
  }
};

/// One value, its references not looked up yet.  KernelArguments.cpp; structs, pointers and tensor maps:
/// ArgumentPieces.cpp.
Result<KernelArgument> parseArgument(unsigned index, const std::string &text, const std::string &label = {});
Status parsePointer(KernelArgument &a, std::string_view text);
Status parseTensorMap(KernelArgument &a, std::string_view text);
Status parseStruct(KernelArgument &a, std::string_view text);
/// "+256" at the end of a buffer's text is its offset.
Status takeOffset(KernelArgument &a, std::string_view &text);

/// The values of --arg, then those of --buffer (NAME=VALUE), with their references looked up.
Result<std::vector<KernelArgument>> parseArguments(const std::vector<std::string> &arguments,
                                                   const std::vector<std::string> &buffers);

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
