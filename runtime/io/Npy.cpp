#include "runtime/io/Npy.h"

#include "support/Parallel.h"
#include "support/Text.h"

#include <cstring>
#include <new>

namespace kiln {

/// `bytes` is what follows the header.
static Status checkDataBytes(const NpyHeader &header, std::uint64_t bytes, const std::string &file) {
  if (bytes == header.dataBytes)
    return {};
  const std::string what = "'" + file + "' " + (bytes < header.dataBytes ? "is truncated" : "is too long") +
                           ": shape " + shapeText(header.shape) + " of " + std::string(dtypeName(header.type)) +
                           " needs " + std::to_string(header.dataBytes) + " bytes of data, the file has " +
                           std::to_string(bytes);
  return Status::invalid(what, "write it again with numpy.save");
}

/// Fortran order (first index fastest) to C order (last index fastest).
static std::vector<std::byte> fromFortranOrder(const std::vector<std::byte> &data, const Shape &shape,
                                               std::size_t width) {
  std::vector<std::byte> out(data.size());
  const std::size_t rank = shape.size(), count = data.size() / width;
  std::vector<std::uint64_t> index(rank, 0), stride(rank, 1);
  for (std::size_t i = 1; i < rank; ++i)
    stride[i] = stride[i - 1] * shape[i - 1];
  std::uint64_t from = 0;
  for (std::size_t to = 0; to < count; ++to) {
    std::memcpy(&out[to * width], &data[from * width], width);
    for (std::size_t d = rank; d-- > 0;) {
      from += stride[d];
      if (++index[d] < shape[d])
        break;
      from -= stride[d] * shape[d];
      index[d] = 0;
    }
  }
  return out;
}

static Status noMemory(std::uint64_t bytes, const std::string &file) {
  return {StatusCode::OutOfMemory, "no memory for the " + std::to_string(bytes) + " bytes of '" + file + "'"};
}

static Array finish(const NpyHeader &header, std::vector<std::byte> data) {
  if (header.fortranOrder && header.shape.size() > 1)
    data = fromFortranOrder(data, header.shape, dtypeBytes(header.type));
  return {header.type, header.shape, std::move(data)};
}

Result<Array> parseNpy(std::span<const std::byte> file, const std::string &name) {
  KILN_ASSIGN(const NpyHeader header, parseNpyHeader(file, name));
  const std::span<const std::byte> data = file.subspan(header.dataOffset);
  KILN_TRY(checkDataBytes(header, data.size(), name));
  try {
    return finish(header, {data.begin(), data.end()});
  } catch (const std::bad_alloc &) {
    return noMemory(header.dataBytes, name);
  }
}

Result<Array> readNpy(const std::string &path) {
  KILN_ASSIGN(InputFile file, InputFile::open(path));
  std::vector<std::byte> start(std::min<std::uint64_t>(12, file.size()));
  KILN_TRY(file.read(start));
  KILN_ASSIGN(const std::uint64_t headerBytes, npyHeaderBytes(start, path));
  const std::size_t have = start.size();
  if (headerBytes > have) {
    start.resize(std::min(headerBytes, file.size()));
    KILN_TRY(file.read(std::span(start).subspan(have)));
  }
  KILN_ASSIGN(const NpyHeader header, parseNpyHeader(start, path));
  KILN_TRY(checkDataBytes(header, file.size() - header.dataOffset, path));
  try {
    // A header shorter than the first read leaves the start of the data there.
    std::vector<std::byte> data(header.dataBytes);
    const std::size_t early = start.size() - header.dataOffset;
    if (early)
      std::memcpy(data.data(), start.data() + header.dataOffset, early);
    KILN_TRY(file.read(std::span(data).subspan(early)));
    return finish(header, std::move(data));
  } catch (const std::bad_alloc &) {
    return noMemory(header.dataBytes, path);
  }
}

static std::string npyHeaderText(DType type, const Shape &shape) {
  std::string extents;
  for (std::uint64_t extent : shape)
    extents += std::to_string(extent) + ", ";
  if (shape.size() > 1)
    extents.resize(extents.size() - 2);
  else if (!extents.empty())
    extents.pop_back();
  std::string text =
      "{'descr': '" + std::string(dtypeNpyCode(type)) + "', 'fortran_order': False, 'shape': (" + extents + "), }";
  // The data starts at a multiple of 64 bytes; the last byte of the header is a newline.
  while ((10 + text.size() + 1) % 64)
    text += ' ';
  return text + '\n';
}

Status writeNpy(OutputFile &file, const Array &array) {
  if (dtypeNpyCode(array.type).empty()) {
    KILN_ASSIGN(const Array wide, convertArray(array, DType::F32, file.path()));
    return writeNpy(file, wide);
  }
  const std::string text = npyHeaderText(array.type, array.shape);
  std::string start = {'\x93',
                       'N',
                       'U',
                       'M',
                       'P',
                       'Y',
                       1,
                       0,
                       static_cast<char>(text.size() & 0xff),
                       static_cast<char>(text.size() >> 8)};
  KILN_TRY(file.write(start + text));
  return file.write(array.data);
}

Status writeNpy(const std::string &path, const Array &array) {
  KILN_ASSIGN(OutputFile file, OutputFile::create(path));
  KILN_TRY(writeNpy(file, array));
  return file.commit();
}

template <typename T> static void store(std::byte *to, T value) {
  std::memcpy(to, &value, sizeof value);
}

bool readsBits(DType from, DType to) {
  const bool raw = from == DType::Raw8 || from == DType::Raw16 || from == DType::U8 || from == DType::U16;
  return raw && dtypeFloatFormat(to) && dtypeBytes(from) == dtypeBytes(to);
}

Result<Array> convertArray(Array array, DType to, const std::string &name) {
  if (array.type == to)
    return array;
  const DType from = array.type;
  if (readsBits(from, to)) {
    array.type = to;
    return array;
  }
  if (dtypeKind(from) != DTypeKind::Float || dtypeKind(to) != DTypeKind::Float) {
    std::string remedy = "save the file as " + std::string(dtypeNumpyName(to));
    if (dtypeFloatFormat(to))
      remedy = dtypeBytes(to) == 2 ? "save it as float32, or its bits as uint16"
                                   : "save it as float32, or its bits as uint8";
    return Status::invalid("'" + name + "' holds " + std::string(dtypeName(from)) + ", which is not converted to " +
                               std::string(dtypeName(to)),
                           remedy);
  }
  try {
    const std::size_t count = array.elements(), width = dtypeBytes(to), step = dtypeBytes(from);
    std::vector<std::byte> data(count * width);
    const FloatFormat *small = dtypeFloatFormat(to);
    inPieces(count, std::size_t(1) << 18, [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) {
        const double value = loadElement(&array.data[i * step], from);
        std::byte *out = &data[i * width];
        if (small && width == 2)
          store(out, static_cast<std::uint16_t>(encodeFloat(value, *small)));
        else if (small)
          store(out, static_cast<std::uint8_t>(encodeFloat(value, *small)));
        else if (to == DType::F32)
          store(out, static_cast<float>(value));
        else
          store(out, value);
      }
    });
    return Array{to, std::move(array.shape), std::move(data)};
  } catch (const std::bad_alloc &) {
    return Status(StatusCode::OutOfMemory, "no memory to convert '" + name + "'");
  }
}

} // namespace kiln
