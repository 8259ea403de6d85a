// Arguments that refer to the buffers of others: pointers, tensor maps, structs with either inside.
#include "runtime/tools/KernelArguments.h"

#include "support/ParseNumber.h"
#include "support/Text.h"

#include <algorithm>

namespace kiln::tools {

namespace {

Result<std::uint64_t> parseCount(const KernelArgument &a, const std::string &what, std::string_view text) {
  const bool hex = text.starts_with("0x");
  const std::optional<std::uint64_t> value = parseNumber<std::uint64_t>(text.substr(hex ? 2 : 0), hex ? 16 : 10);
  if (!value)
    return Status::invalid(a.name() + ": " + what + " '" + std::string(text) + "' is not a number from 0 to 2^64 - 1",
                           "write it in decimal or as 0x...");
  return *value;
}

/// "16x64": outermost dimension first, as shapes are written.
Result<std::vector<std::uint64_t>> parseList(const KernelArgument &a, const std::string &what, std::string_view text) {
  std::vector<std::uint64_t> out;
  for (const std::string_view piece : split(text, 'x')) {
    KILN_ASSIGN(const std::uint64_t value, parseCount(a, what, piece));
    out.push_back(value);
  }
  std::reverse(out.begin(), out.end()); // recipes begin with the innermost
  return out;
}

/// "q+256" or "2".
Status parseReference(KernelArgument &a, std::string_view text) {
  const std::size_t plus = text.find('+');
  a.reference = text.substr(0, plus);
  if (a.reference.empty())
    return Status::invalid(a.name() + " names no buffer",
                           "write the number of an argument, or the name of a --buffer: arg:0, arg:q+256");
  if (plus == std::string_view::npos)
    return {};
  KILN_ASSIGN(a.offset, parseCount(a, "the offset", text.substr(plus + 1)));
  return {};
}

Status setMapField(KernelArgument &a, std::string_view key, std::string_view value) {
  TensorMapRecipe &m = a.map;
  auto named = [&](auto parsed, auto &field) -> Status {
    if (!parsed)
      return parsed.takeStatus().withContext(a.name());
    field = *parsed;
    return {};
  };
  if (key == "swizzle")
    return named(parseTensorMapSwizzle(value), m.swizzle);
  if (key == "interleave")
    return named(parseTensorMapInterleave(value), m.interleave);
  if (key == "promotion")
    return named(parseTensorMapPromotion(value), m.promotion);
  if (key == "fill")
    return named(parseTensorMapFill(value), m.fill);
  if (key != "dims" && key != "strides" && key != "steps")
    return Status::invalid(a.name() + ": '" + std::string(key) + "' is nothing that a tensor map has",
                           "it has dims, strides, steps, swizzle, interleave, promotion and fill");
  KILN_ASSIGN(const std::vector<std::uint64_t> list, parseList(a, std::string(key), value));
  const std::size_t wanted = m.rank - (key == "strides");
  if (list.size() != wanted)
    return Status::invalid(a.name() + ": " + std::string(key) + " has " + std::to_string(list.size()) +
                               " numbers, the box has " + std::to_string(m.rank) + " dimensions",
                           "give " + std::to_string(wanted) + " numbers with x between, the outermost dimension first" +
                               (key == "strides" ? "; the innermost has no stride" : ""));
  for (std::size_t i = 0; i < list.size(); ++i)
    if (key == "dims")
      m.dims[i] = list[i];
    else if (key == "strides")
      m.strides[i] = list[i];
    else
      m.elementStrides[i] = static_cast<std::uint32_t>(std::min<std::uint64_t>(list[i], ~std::uint32_t(0)));
  return {};
}

/// What the text leaves out comes from the buffer: its shape, and strides without gaps.
Status completeMap(KernelArgument &a, const KernelArgument &buffer) {
  TensorMapRecipe &m = a.map;
  if (m.dims[0] == 0) {
    const Shape &shape = buffer.array.shape;
    const unsigned given = dtypeBytes(buffer.array.type), wanted = tensorMapTypeBytes(m.type);
    if (shape.size() != m.rank || given != wanted)
      return Status::invalid(a.name() + ": the box has " + std::to_string(m.rank) + " dimensions of elements of " +
                                 std::to_string(wanted) + " bytes, " + buffer.name() + " has " +
                                 std::to_string(shape.size()) + " of " + std::to_string(given),
                             "say the tensor's extents: dims=, the outermost first");
    for (unsigned i = 0; i < m.rank; ++i)
      m.dims[i] = shape[m.rank - 1 - i];
  }
  if (m.rank > 1 && m.strides[0] == 0)
    m.setDenseStrides();
  return {};
}

Status resolve(KernelArgument &a, const std::vector<KernelArgument> &all) {
  for (KernelArgument &piece : a.pieces)
    if (Status s = resolve(piece, all); !s.ok())
      return std::move(s).withContext(a.name() + " at byte " + std::to_string(piece.place));
  if (a.isBuffer() && a.offset > a.bufferBytes)
    return Status::invalid(a.name() + " points past the end of its buffer of " + std::to_string(a.bufferBytes) +
                               " bytes",
                           "offsets are bytes, from 0 to the buffer's size");
  if (a.reference.empty())
    return {};
  const bool isNumber = a.reference.find_first_not_of("0123456789") == std::string::npos;
  const auto found = std::find_if(all.begin(), all.end(), [&](const KernelArgument &b) {
    return isNumber ? b.isParameter() && std::to_string(b.index) == a.reference : b.label == a.reference;
  });
  std::vector<std::string> names;
  for (const KernelArgument &b : all)
    if (b.isBuffer())
      names.push_back(b.isParameter() ? std::to_string(b.index) : b.label);
  const std::string remedy =
      names.empty() ? "there is none yet: add --buffer NAME=FILE.npy" : "buffers: " + join(names);
  if (found == all.end())
    return Status::invalid(a.name() + ": there is no buffer '" + a.reference + "'", remedy);
  if (!found->isBuffer())
    return Status::invalid(a.name() + ": " + found->name() + " is not a buffer", remedy);
  if (a.offset > found->bufferBytes)
    return Status::invalid(a.name() + ": byte " + std::to_string(a.offset) + " is past the end of " + found->name() +
                               ", which has " + std::to_string(found->bufferBytes) + " bytes",
                           "offsets are bytes, from 0 to the buffer's size");
  a.target = found->index;
  return a.kind == KernelArgument::Kind::TensorMap ? completeMap(a, *found) : Status();
}

/// Bytes that a piece takes in its struct.
std::size_t sizeOf(const KernelArgument &piece) {
  return piece.kind == KernelArgument::Kind::TensorMap ? TensorMap::size
         : piece.kind == KernelArgument::Kind::Pointer ? sizeof(DeviceAddress)
                                                       : piece.bytes.size();
}

Status parsePiece(KernelArgument &a, std::string_view text) {
  const std::size_t equal = text.find('=');
  if (equal == std::string_view::npos)
    return Status::invalid(a.name() + ": '@" + std::string(text) + "' has no value",
                           "write @OFFSET=VALUE, as in @16=arg:0 or @24=i32:7");
  KILN_ASSIGN(const std::uint64_t place, parseCount(a, "the offset", text.substr(0, equal)));
  Result<KernelArgument> parsed = parseArgument(a.index, std::string(text.substr(equal + 1)), a.label);
  if (!parsed)
    return parsed.takeStatus().withContext(a.name() + " at byte " + std::to_string(place));
  KernelArgument &piece = *parsed;
  piece.place = place;
  if (piece.isBuffer() || piece.kind == KernelArgument::Kind::Bytes || piece.kind == KernelArgument::Kind::Struct)
    return Status::invalid(a.name() + ": '" + piece.text + "' cannot lie in a struct",
                           "a struct holds numbers, arg:, ptr: and tmap:; name a buffer with --buffer NAME=" +
                               piece.text + " and point to it with arg:NAME");
  const std::size_t bytes = sizeOf(piece);
  if (place > a.bytes.size() || bytes > a.bytes.size() - place)
    return Status::invalid(a.name() + ": '" + piece.text + "' takes " + std::to_string(bytes) + " bytes at " +
                               std::to_string(place) + ", the struct has " + std::to_string(a.bytes.size()),
                           "offsets are bytes from its start");
  for (const KernelArgument &other : a.pieces)
    if (place < other.place + sizeOf(other) && other.place < place + bytes)
      return Status::invalid(a.name() + ": '" + piece.text + "' at " + std::to_string(place) + " overlaps '" +
                                 other.text + "' at " + std::to_string(other.place),
                             "give each piece bytes of its own");
  a.pieces.push_back(std::move(piece));
  return {};
}

} // namespace

Status takeOffset(KernelArgument &a, std::string_view &text) {
  const std::size_t plus = text.rfind('+');
  if (plus == std::string_view::npos)
    return {};
  KILN_ASSIGN(a.offset, parseCount(a, "the offset", text.substr(plus + 1)));
  text = text.substr(0, plus);
  return {};
}

Status parsePointer(KernelArgument &a, std::string_view text) {
  a.kind = KernelArgument::Kind::Pointer;
  return parseReference(a, text);
}

Status parseTensorMap(KernelArgument &a, std::string_view text) {
  const std::vector<std::string_view> fields = split(text, ':');
  if (fields.size() < 3)
    return Status::invalid(a.name() + " is not tmap:BUFFER:TYPE:BOX",
                           "write for instance tmap:0:bf16:64x64:swizzle=128B, the outermost dimension first");
  a.kind = KernelArgument::Kind::TensorMap;
  KILN_TRY(parseReference(a, fields[0]));
  Result<TensorMapType> type = parseTensorMapType(fields[1]);
  if (!type)
    return type.takeStatus().withContext(a.name());
  a.map.type = *type;
  KILN_ASSIGN(const std::vector<std::uint64_t> box, parseList(a, "the box", fields[2]));
  if (box.size() > TensorMapRecipe::maxRank)
    return Status::invalid(a.name() + ": a box of " + std::to_string(box.size()) + " dimensions",
                           "a tensor map has at most " + std::to_string(TensorMapRecipe::maxRank));
  a.map.rank = static_cast<unsigned>(box.size());
  for (std::size_t i = 0; i < box.size(); ++i)
    a.map.box[i] = static_cast<std::uint32_t>(std::min<std::uint64_t>(box[i], ~std::uint32_t(0)));
  for (std::size_t i = 3; i < fields.size(); ++i) {
    const std::size_t equal = fields[i].find('=');
    KILN_TRY(setMapField(a, fields[i].substr(0, equal),
                         equal == std::string_view::npos ? std::string_view() : fields[i].substr(equal + 1)));
  }
  return {};
}

Status parseStruct(KernelArgument &a, std::string_view text) {
  a.kind = KernelArgument::Kind::Struct;
  // A file's name may hold an @ that no number follows.
  auto pieceAt = [&](std::size_t from) {
    std::size_t at = text.find('@', from);
    while (at != std::string_view::npos && (at + 1 == text.size() || text[at + 1] < '0' || text[at + 1] > '9'))
      at = text.find('@', at + 1);
    return at;
  };
  std::size_t at = pieceAt(0);
  const std::string_view base = text.substr(0, at);
  if (base.starts_with("zeros:")) {
    constexpr std::uint64_t most = 32764; // bytes of all parameters of a kernel
    KILN_ASSIGN(const std::uint64_t bytes, parseCount(a, "the size", base.substr(6)));
    if (bytes == 0 || bytes > most)
      return Status::invalid(a.name() + ": a struct of " + std::to_string(bytes) + " bytes",
                             "a kernel's parameters have 1 to " + std::to_string(most) + " bytes");
    a.bytes.resize(bytes);
  } else if (base.ends_with(".npy")) {
    Result<Array> array = readNpy(std::string(base));
    if (!array)
      return array.takeStatus().withContext(a.name());
    a.bytes = std::move(array->data);
  } else {
    return Status::invalid(a.name() + ": '" + std::string(base) + "' is neither FILE.npy nor zeros:BYTES",
                           "write struct:zeros:64@0=arg:0@8=i32:7 or struct:FILE.npy@0=arg:0");
  }
  while (at != std::string_view::npos) {
    const std::size_t next = pieceAt(at + 1);
    KILN_TRY(parsePiece(a, text.substr(at + 1, next == std::string_view::npos ? next : next - at - 1)));
    at = next;
  }
  return {};
}

Result<std::vector<KernelArgument>> parseArguments(const std::vector<std::string> &arguments,
                                                   const std::vector<std::string> &buffers) {
  std::vector<KernelArgument> all;
  for (const std::string &text : arguments) {
    KILN_ASSIGN(KernelArgument a, parseArgument(static_cast<unsigned>(all.size()), text));
    all.push_back(std::move(a));
  }
  for (const std::string &text : buffers) {
    const std::size_t equal = text.find('=');
    const std::string name = text.substr(0, equal);
    const bool good =
        equal != std::string::npos && !name.empty() && (name[0] < '0' || name[0] > '9') &&
        std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) || c == '_'; });
    if (!good)
      return Status::invalid("--buffer '" + text + "' is not NAME=VALUE with a name of letters, digits and _",
                             "write it as --buffer q=q.npy; a name does not start with a digit");
    for (const KernelArgument &other : all)
      if (other.label == name)
        return Status::invalid("--buffer " + name + " is given twice", "give each buffer a name of its own");
    KILN_ASSIGN(KernelArgument a, parseArgument(static_cast<unsigned>(all.size()), text.substr(equal + 1), name));
    if (!a.isBuffer() || a.offset)
      return Status::invalid(a.name() + " is not a whole buffer",
                             "write FILE.npy, DTYPE:FILE.npy, out:DTYPE:SHAPE or zeros:DTYPE:SHAPE");
    all.push_back(std::move(a));
  }
  std::vector<KernelArgument> resolved = all;
  for (KernelArgument &a : resolved)
    KILN_TRY(resolve(a, all));
  return resolved;
}

} // namespace kiln::tools
