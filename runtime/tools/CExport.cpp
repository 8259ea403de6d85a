#include "runtime/tools/CExport.h"

#include "kiln/KernelSource.h"
#include "support/ReservedWords.h"
#include "support/Text.h"

#include <algorithm>
#include <map>
#include <set>

namespace kiln::tools {
namespace {

/// Words that no parameter may be called besides C's: the functions use them themselves.
constexpr std::string_view own = "grid_x grid_y grid_z kernel parameters stream CUstream codes not_loaded bad_grid "
                                 "first_fact cuLaunchKernel code status CUresult";

bool isLetter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool isDigit(char c) {
  return c >= '0' && c <= '9';
}

std::string identifier(std::string_view text) {
  std::string out;
  for (const char c : text)
    out += isLetter(c) || isDigit(c) ? c : '_';
  if (out.empty() || isDigit(out[0]) || out[0] == '_')
    out = "argument" + out;
  return out;
}

/// In a string literal or a comment: as it is, if it is plain.
std::string plain(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool endsComment = c == '/' && i > 0 && text[i - 1] == '*';
    out += c < ' ' || c > '~' || c == '"' || c == '\\' || c == '?' || endsComment ? '_' : c;
  }
  return out;
}

std::string integerLiteral(std::int64_t value) {
  return value == INT64_MIN ? "(-INT64_C(9223372036854775807) - 1)" : "INT64_C(" + std::to_string(value) + ")";
}

struct Argument {
  std::string name;   ///< the kernel's
  std::string spoken; ///< C's
  ParsedArgumentType type;
  std::string typeText, cType;
};

struct CheckedFact {
  std::size_t argument = 0;
  bool equals = false;
  std::int64_t value = 0;
  auto operator<=>(const CheckedFact &) const = default;
};

class Exporter {
public:
  Exporter(const std::string &name, const std::string &configuration, std::vector<CImage> images)
      : name(name), configuration(configuration), images(std::move(images)) {}

  Result<CFiles> operator()() {
    // The first that runs on a GPU is the best one for it.
    std::stable_sort(images.begin(), images.end(), [](const CImage &a, const CImage &b) {
      return std::pair(a.target->sm, a.target->archSpecific) > std::pair(b.target->sm, b.target->archSpecific);
    });
    KILN_TRY(readArguments());
    for (std::size_t i = 0; i < images.size(); ++i)
      KILN_TRY(readImage(i));
    for (const Argument &a : arguments)
      parameters += ",\n    " + a.cType + " " + a.spoken;
    return CFiles{header(), source()};
  }

private:
  Status readArguments() {
    std::set<std::string> used;
    for (const std::string_view words : {reservedWords, own})
      for (const std::string_view word : split(words, ' '))
        used.emplace(word);
    for (const Json &a : images.front().metadata["arguments"]) {
      Argument &one = arguments.emplace_back();
      one.name = a.value("name", "");
      one.typeText = a.value("type", "");
      const std::size_t at = one.typeText.find("ptr"); // "!tile.ptr<f32>" of text files
      KILN_ASSIGN(one.type, parseArgumentType(at == std::string::npos ? one.typeText : one.typeText.substr(at)));
      one.cType = cType(one.type.type);
      one.spoken = identifier(one.name);
      while (!used.insert(one.spoken).second)
        one.spoken += '_';
    }
    for (const CImage &image : images)
      if (image.metadata["arguments"].size() != arguments.size())
        return {StatusCode::Internal, "targets give the kernel different arguments"};
    return {};
  }

  static std::string cType(ArgumentType type) {
    switch (type) {
    case ArgumentType::I1:
      return "uint8_t";
    case ArgumentType::I8:
      return "int8_t";
    case ArgumentType::I16:
      return "int16_t";
    case ArgumentType::I32:
      return "int32_t";
    case ArgumentType::I64:
      return "int64_t";
    case ArgumentType::F16:
    case ArgumentType::BF16:
      return "uint16_t"; // its bits
    case ArgumentType::F32:
      return "float";
    case ArgumentType::F64:
      return "double";
    default:
      return "uint64_t"; // an address of the device
    }
  }

  Status readImage(std::size_t number) {
    const Json &m = images[number].metadata;
    if (m.contains("hidden"))
      return {StatusCode::Unsupported,
              "kernel '" + m.value("kernel", "") + "' for " + std::string(images[number].target->name) +
                  " has tensor maps that its author wrote; C code does not make them",
              "launch it with Kiln, or write it without them"};
    for (const Json &guard : m["guards"]) {
      CheckedFact fact;
      fact.argument = guard.value("argument", std::size_t(SIZE_MAX));
      fact.equals = guard.contains("equals");
      const auto value = guard.find(fact.equals ? "equals" : "divisibility");
      const bool known = guard.size() == 2 && fact.argument < arguments.size() && value != guard.end() &&
                         value->is_number_integer() && (fact.equals || value->get<std::int64_t>() > 0);
      if (!known)
        return {StatusCode::Internal, "the code relies on a fact that this program does not know: " + guard.dump(),
                "use the libkiln-compiler of this version"};
      fact.value = value->get<std::int64_t>();
      facts[fact] |= 1u << number;
    }
    // What every kernel relies on: elements lie at multiples of their size.
    for (std::size_t i = 0; i < arguments.size(); ++i)
      if (const unsigned size = arguments[i].type.elementBytes;
          arguments[i].type.type == ArgumentType::Pointer && size > 1 && !implied(i, size, number))
        facts[{i, false, size}] |= 1u << number;
    return {};
  }

  /// Whether another fact of the image's code says that the argument is a multiple of `size`, a power of two.
  bool implied(std::size_t argument, unsigned size, std::size_t image) const {
    return std::any_of(facts.begin(), facts.end(), [&](const auto &f) {
      return f.first.argument == argument && (f.second >> image & 1) && f.first.value % size == 0;
    });
  }

  unsigned all() const { return images.size() == 32 ? ~0u : (1u << images.size()) - 1; }

  std::string factText(const CheckedFact &fact) const {
    return "argument " + std::to_string(fact.argument) + " '" + plain(arguments[fact.argument].name) + "' must be " +
           (fact.equals ? std::to_string(fact.value) : "a multiple of " + std::to_string(fact.value));
  }

  std::string header() const {
    const Json &m = images.front().metadata;
    std::string out = "/* Kernel '" + plain(m.value("kernel", "")) + "', compiled by Kiln.  With " + name +
                      ".c, a C11 compiler and -lcuda it needs nothing else.\n *\n";
    if (!configuration.empty())
      out += " * Configuration: " + plain(configuration) + ".\n";
    out += " * Arguments, in order (addresses are the device's; f16 and bf16 are passed as bits):\n";
    for (const Argument &a : arguments)
      out += " *   " + a.spoken + ": " + plain(a.typeText) + "\n";
    out +=
        " * The kernel needs no workspace but its arguments.  The grid is the caller's: as many blocks as its program "
        "ids\n * count.\n";
    if (!facts.empty()) {
      out += " * The code relies on these facts, which " + name + "_launch checks:\n";
      for (const auto &[fact, of] : facts) {
        out += " *   " + factText(fact);
        if (of != all()) {
          std::vector<std::string> targets;
          for (std::size_t i = 0; i < images.size(); ++i)
            if (of >> i & 1)
              targets.emplace_back(images[i].target->name);
          out += " (" + join(targets) + ")";
        }
        out += "\n";
      }
    }
    out += " * Code:\n";
    for (const CImage &image : images)
      out += " *   " + std::string(image.target->name) + ": " + std::to_string(threads(image)) + " threads a block, " +
             std::to_string(image.metadata.value("shared_bytes", 0u)) + " bytes of shared memory" + clusterText(image) +
             (image.assembled ? "" : "; PTX, which the driver assembles") + "\n";
    out += " */\n";
    const std::string guard = "KILN_EXPORT_" + name + "_H";
    out +=
        "#ifndef " + guard + "\n#define " + guard + "\n\n#include <stdint.h>\n\n#ifdef __cplusplus\nextern \"C\" {\n" +
        "#endif\n\ntypedef struct CUstream_st *CUstream; /* as in cuda.h */\n\n" +
        "/* Loaded code: of one context, and of any threads. */\ntypedef struct " + name +
        "_kernel {\n  void *module, *function; /* CUmodule, CUfunction */\n  unsigned code, shared_bytes;\n} " + name +
        "_kernel;\n\n" +
        "/* 0: good.  Less: the call is wrong.  More: an error of the driver, a CUresult.  Each has a message. */\n" +
        "const char *" + name + "_message(int status);\n\n" +
        "/* Loads the code for the GPU of the current context; not inside a graph capture. */\nint " + name + "_load(" +
        name + "_kernel *kernel);\nint " + name + "_unload(" + name + "_kernel *kernel);\n\n" +
        "/* Checks the arguments and launches, in the current context; no synchronisation, no allocation. */\nint " +
        name + "_launch(const " + name + "_kernel *kernel, CUstream stream, uint32_t grid_x, uint32_t grid_y, " +
        "uint32_t grid_z" + parameters + ");\n\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n";
    return out;
  }

  static unsigned threads(const CImage &image) {
    return 32 * (image.metadata.value("num_warps", 1u) + image.metadata.value("copy_warps", 0u));
  }
  static std::vector<unsigned> cluster(const CImage &image) {
    return image.metadata.contains("cluster") ? image.metadata["cluster"].get<std::vector<unsigned>>()
                                              : std::vector<unsigned>{1, 1, 1};
  }
  static std::string clusterText(const CImage &image) {
    const std::vector<unsigned> c = cluster(image);
    return image.metadata.contains("cluster") ? format(", a grid of multiples of (%u, %u, %u)", c[0], c[1], c[2]) : "";
  }

  std::string arrays() const {
    std::string out;
    for (std::size_t i = 0; i < images.size(); ++i) {
      out += "/* " + std::string(images[i].target->name) + " */\nstatic const _Alignas(16) unsigned char code_" +
             std::to_string(i) + "[] = {";
      // The driver takes a text up to its zero.
      std::vector<std::byte> bytes = images[i].code;
      if (!images[i].assembled)
        bytes.push_back(std::byte(0));
      for (std::size_t b = 0; b < bytes.size(); ++b)
        out += (b % 32 ? "" : "\n  ") + std::to_string(static_cast<unsigned>(bytes[b])) + ",";
      out += "};\n";
    }
    return out;
  }

  std::string source() const {
    std::string out =
        "/* Made by Kiln; see " + name + ".h. */\n#include \"" + name + ".h\"\n\n#include <stddef.h>\n\n" +
        R"(/* The driver's functions, as cuda.h has them; CUresult is an int, CUmodule and CUfunction are pointers. */
extern int cuCtxGetDevice(int *device);
extern int cuDeviceGetAttribute(int *value, int attribute, int device);
extern int cuModuleLoadData(void **module, const void *image);
extern int cuModuleUnload(void *module);
extern int cuModuleGetFunction(void **function, void *module, const char *name);
extern int cuFuncGetAttribute(int *value, int attribute, void *function);
extern int cuFuncSetAttribute(void *function, int attribute, int value);
extern int cuLaunchKernel(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                          unsigned block_y, unsigned block_z, unsigned shared_bytes, CUstream stream, void **parameters,
                          void **extra);
enum { compute_major = 75, compute_minor = 76, static_shared = 1, dynamic_shared = 8 };

)";
    out += arrays() + R"(
static const struct {
  const void *code;
  const char *entry;
  int major, minor;
  int exact; /* for this GPU alone */
  int text;  /* PTX: for later ones, too */
  unsigned threads, shared_bytes, cluster_x, cluster_y, cluster_z;
} codes[] = {
)";
    for (std::size_t i = 0; i < images.size(); ++i) {
      const CImage &image = images[i];
      const std::vector<unsigned> c = cluster(image);
      out += "    {code_" + std::to_string(i) + ", \"" + plain(image.metadata.value("entry", "")) + "\", " +
             format("%u, %u, %d, %d, %u, %u, %u, %u, %u},\n", image.target->sm / 10, image.target->sm % 10,
                    image.target->archSpecific, !image.assembled, threads(image),
                    image.metadata.value("shared_bytes", 0u), c[0], c[1], c[2]);
    }
    out += "};\n\nenum { no_code = -1, not_loaded = -2, bad_grid = -3, first_fact = -4 };\n\nconst char *" + name +
           R"(_message(int status) {
  static const char *const facts[] = {
)";
    for (const auto &entry : facts)
      out += "      \"" + factText(entry.first) + "\",\n";
    std::vector<std::string> targets;
    for (const CImage &image : images)
      targets.emplace_back(image.target->name);
    out += R"(      NULL};
  if (status == 0)
    return "good";
  if (status > 0)
    return "an error of the driver: cuGetErrorName has its name";
  if (status == no_code)
    return "there is no code for this GPU, only for )" +
           join(targets) + R"(";
  if (status == not_loaded)
    return "the kernel is not loaded: call )" +
           name + R"(_load first";
  if (status == bad_grid)
    return "grid_x, grid_y and grid_z must be at least 1, and multiples of the kernel's cluster";
  if (status <= first_fact && (size_t)(first_fact - status) + 1 < sizeof(facts) / sizeof(facts[0]))
    return facts[first_fact - status];
  return "no status of this kernel";
}

int )" + name +
           "_load(" + name + R"(_kernel *kernel) {
  int device = 0, major = 0, minor = 0, fixed = 0, error;
  size_t i;
  kernel->module = kernel->function = NULL;
  kernel->code = kernel->shared_bytes = 0;
  if ((error = cuCtxGetDevice(&device)) != 0 ||
      (error = cuDeviceGetAttribute(&major, compute_major, device)) != 0 ||
      (error = cuDeviceGetAttribute(&minor, compute_minor, device)) != 0)
    return error;
  for (i = 0; i < sizeof(codes) / sizeof(codes[0]); ++i) {
    int same = codes[i].major == major && codes[i].minor == minor;
    int older = codes[i].major == major ? codes[i].minor <= minor : codes[i].text && codes[i].major < major;
    if (codes[i].exact ? same : older)
      break;
  }
  if (i == sizeof(codes) / sizeof(codes[0]))
    return no_code;
  kernel->code = (unsigned)i;
  if ((error = cuModuleLoadData(&kernel->module, codes[i].code)) != 0) {
    kernel->module = NULL;
    return error;
  }
  if ((error = cuModuleGetFunction(&kernel->function, kernel->module, codes[i].entry)) == 0 &&
      (error = cuFuncGetAttribute(&fixed, static_shared, kernel->function)) == 0) {
    if (codes[i].shared_bytes > (unsigned)fixed)
      kernel->shared_bytes = codes[i].shared_bytes - (unsigned)fixed;
    if (kernel->shared_bytes)
      error = cuFuncSetAttribute(kernel->function, dynamic_shared, (int)kernel->shared_bytes);
  }
  if (error != 0)
    (void))" +
           name + "_unload(kernel);\n  return error;\n}\n\nint " + name + "_unload(" + name + R"(_kernel *kernel) {
  int error = kernel->module ? cuModuleUnload(kernel->module) : 0;
  kernel->module = kernel->function = NULL;
  return error;
}

int )" + name +
           "_launch(const " + name +
           "_kernel *kernel, CUstream stream, uint32_t grid_x, uint32_t grid_y, uint32_t grid_z" + parameters + ") {\n";
    out += "  void *parameters[] = {";
    for (const Argument &a : arguments)
      out += "&" + a.spoken + ", ";
    out += R"(NULL};
  if (!kernel->function)
    return not_loaded;
  if (grid_x == 0 || grid_x % codes[kernel->code].cluster_x || grid_y == 0 || grid_y % codes[kernel->code].cluster_y ||
      grid_z == 0 || grid_z % codes[kernel->code].cluster_z)
    return bad_grid;
)";
    std::size_t number = 0;
    for (const auto &[fact, of] : facts) {
      const std::string &argument = arguments[fact.argument].spoken;
      out += "  if (";
      if (of != all())
        out += format("(%#xu >> kernel->code & 1) && ", of);
      out += fact.equals ? "(int64_t)" + argument + " != " + integerLiteral(fact.value)
                         : "(uint64_t)" + argument + " % " + std::to_string(fact.value) + "u != 0";
      out += ")\n    return first_fact - " + std::to_string(number++) + ";\n";
    }
    out += R"(  return cuLaunchKernel(kernel->function, grid_x, grid_y, grid_z, codes[kernel->code].threads, 1, 1,
                        kernel->shared_bytes, stream, parameters, NULL);
}
)";
    return out;
  }

  const std::string &name, &configuration;
  std::vector<CImage> images; ///< the best one first
  std::vector<Argument> arguments;
  std::map<CheckedFact, unsigned> facts; ///< with a bit for each image whose code relies on it
  std::string parameters;                ///< of the function that launches
};

} // namespace

Result<std::string> exportName(const std::string &path) {
  const std::string name = path.substr(path.rfind('/') == std::string::npos ? 0 : path.rfind('/') + 1);
  if (name.empty() || !isLetter(name[0]) ||
      !std::all_of(name.begin(), name.end(), [](char c) { return isLetter(c) || isDigit(c); }))
    return Status::invalid("-o " + path + ": '" + name +
                               "' would be part of the names of C functions, and is no word of "
                               "C",
                           "write -o NAME of letters, digits and _, without a suffix");
  return name;
}

Result<CFiles> exportC(const std::string &name, const std::string &configuration, std::vector<CImage> images) {
  if (images.empty() || images.size() > 32)
    return Status::invalid(std::to_string(images.size()) + " targets: 1 to 32 fit into a file");
  return Exporter(name, configuration, std::move(images))();
}

} // namespace kiln::tools
