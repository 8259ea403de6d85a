#include "compiler/codegen/CompileMessage.h"

#include <cstdint>
#include <cstring>
#include <span>

namespace kiln {
namespace {

constexpr std::uint32_t requestMagic = 0x31716b6bu, resultMagic = 0x31726b6bu;

void put(std::string &out, const void *data, std::size_t bytes) {
  out.append(static_cast<const char *>(data), bytes);
}

void putHeader(std::string &out, std::uint32_t magic) {
  const std::uint32_t abi = KILN_COMPILER_ABI;
  put(out, &magic, sizeof magic);
  put(out, &abi, sizeof abi);
}

void putText(std::string &out, const KilnText &text) {
  const std::uint64_t size = text.size;
  put(out, &size, sizeof size);
  if (text.size)
    put(out, text.data, text.size);
}

/// Takes pieces off the front of the bytes; after a failure everything reads as empty.
class Reader {
public:
  explicit Reader(std::string_view bytes) : rest(bytes) {}
  template <typename T> T number() {
    T value{};
    if (rest.size() < sizeof value) {
      failed = true;
      return value;
    }
    std::memcpy(&value, rest.data(), sizeof value);
    rest.remove_prefix(sizeof value);
    return value;
  }
  KilnText text() {
    const auto size = number<std::uint64_t>();
    if (size > rest.size())
      failed = true;
    if (failed)
      return {"", 0};
    const KilnText out{rest.data(), static_cast<std::size_t>(size)};
    rest.remove_prefix(out.size);
    return out;
  }
  Status finish(const char *what) const {
    if (!failed && rest.empty())
      return {};
    return {StatusCode::Internal, std::string("malformed ") + what + " between compiler and helper",
            "install libkiln-compiler and kiln-compile-helper of one version"};
  }
  void expect(std::uint32_t magic) {
    failed |= number<std::uint32_t>() != magic || number<std::uint32_t>() != KILN_COMPILER_ABI;
  }

private:
  std::string_view rest;
  bool failed = false;
};

} // namespace

std::string encodeRequest(const KilnCompileRequest &request) {
  std::string out;
  putHeader(out, requestMagic);
  for (const KilnText *text : {&request.program, &request.fileName, &request.kernel, &request.codeTarget,
                               &request.specialization, &request.options})
    putText(out, *text);
  return out;
}

Result<KilnCompileRequest> decodeRequest(std::string_view bytes) {
  Reader reader(bytes);
  reader.expect(requestMagic);
  KilnCompileRequest request{};
  for (KilnText *text : {&request.program, &request.fileName, &request.kernel, &request.codeTarget,
                         &request.specialization, &request.options})
    *text = reader.text();
  KILN_TRY(reader.finish("request"));
  return request;
}

std::string encodeResult(const KilnCompileResult &result) {
  std::string out;
  putHeader(out, resultMagic);
  put(out, &result.status, sizeof result.status);
  for (const KilnText *text : {&result.output, &result.metadata, &result.diagnostics})
    putText(out, *text);
  return out;
}

Result<KilnCompileResult> decodeResult(std::string_view bytes) {
  Reader reader(bytes);
  reader.expect(resultMagic);
  KilnCompileResult result{};
  result.status = reader.number<std::int32_t>();
  for (KilnText *text : {&result.output, &result.metadata, &result.diagnostics})
    *text = reader.text();
  KILN_TRY(reader.finish("result"));
  return result;
}

} // namespace kiln
