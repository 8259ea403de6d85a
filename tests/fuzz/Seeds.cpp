#include "Seeds.h"

#include "support/Text.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace kiln::test {
namespace {

constexpr auto none = std::string_view::npos;

std::string withoutComments(std::string_view text) {
  std::string out;
  for (std::string_view line : split(text, '\n')) {
    if (const std::size_t at = line.find("//"); at != none)
      line = line.substr(0, at);
    while (!line.empty() && line.back() == ' ')
      line.remove_suffix(1);
    if (!line.empty())
      out.append(line).push_back('\n');
  }
  return out;
}

/// The place of the bracket that closes the one at `open`.
std::size_t closing(std::string_view text, std::size_t open) {
  int depth = 0;
  for (std::size_t i = open; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') {
      i = text.find('"', i + 1);
      if (i == none)
        return none;
    }
    if (c == '>' && text[i - 1] == '-') // an arrow
      continue;
    depth += c == '(' || c == '<' || c == '{' || c == '[';
    depth -= c == ')' || c == '>' || c == '}' || c == ']';
    if (depth == 0)
      return i;
  }
  return none;
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())))
    text.remove_prefix(1);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())))
    text.remove_suffix(1);
  return text;
}

/// Pieces between commas outside brackets.
std::vector<std::string_view> pieces(std::string_view list) {
  std::vector<std::string_view> out;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= list.size(); ++i) {
    if (i == list.size() || list[i] == ',') {
      if (const std::string_view piece = trim(list.substr(begin, i - begin)); !piece.empty())
        out.push_back(piece);
      begin = i + 1;
    } else if (list[i] == '(' || list[i] == '<' || list[i] == '{' || list[i] == '[') {
      i = std::min(closing(list, i), list.size() - 1);
    }
  }
  return out;
}

/// "!tile.ptr<f32>" of "tensor<64x32x!tile.ptr<f32>, #row>".
std::string_view elementOf(std::string_view tensor) {
  std::string_view inside = tensor.substr(7, tensor.size() - 8);
  for (;;) {
    std::size_t digits = 0;
    while (digits < inside.size() &&
           (std::isdigit(static_cast<unsigned char>(inside[digits])) || inside[digits] == '?'))
      ++digits;
    if (digits == 0 || digits >= inside.size() || inside[digits] != 'x')
      break;
    inside.remove_prefix(digits + 1);
  }
  const std::vector<std::string_view> parts = pieces(inside);
  return parts.empty() ? inside : parts[0];
}

/// One function as a kernel; empty if it has no body.
std::string asKernel(std::string_view function) {
  const std::size_t open = function.find('(');
  const std::size_t close = open == none ? none : closing(function, open);
  if (close == none)
    return {};
  // Results and attributes stand between the arguments and the body, which starts a line's end with a brace.
  const std::size_t body = function.find("{\n", close);
  if (body == none)
    return {};
  std::string_view between = function.substr(close + 1, body - close - 1);
  std::string attributes;
  if (const std::size_t at = between.find("attributes {"); at != none) {
    attributes = between.substr(at + 12, closing(between, at + 11) - at - 12);
    between = between.substr(0, at);
  }
  if (attributes.find("tile.kernel") != std::string::npos)
    return std::string(function);

  std::string parameters, made;
  for (const std::string_view argument : pieces(function.substr(open + 1, close - open - 1))) {
    const std::size_t colon = argument.find(':');
    if (colon == none)
      return {};
    const std::string name(trim(argument.substr(0, colon))), type(trim(argument.substr(colon + 1)));
    std::string parameter = name + ": " + type;
    if (type.starts_with("tensor<") && type.back() == '>') {
      const std::string element(elementOf(type));
      parameter = name + "_scalar: " + element;
      made += "  " + name + " = tile.splat " + name + "_scalar : " + element + " to " + type + "\n";
    } else if (type.starts_with("!tile_gpu.")) {
      parameter.clear();
      made += "  " + name + " = tile_gpu.local_alloc : " + type + "\n";
    }
    if (!parameter.empty())
      parameters += (parameters.empty() ? "" : ", ") + parameter;
  }
  std::vector<std::string> outputs;
  std::string text = made;
  for (const std::string_view line : split(function.substr(body + 2), '\n')) {
    const std::string_view statement = trim(line);
    const std::size_t colon = statement.find(" : ");
    if (!statement.starts_with("return ") || colon == none) {
      text.append(line).push_back('\n');
      continue;
    }
    const auto values = pieces(statement.substr(7, colon - 7)), types = pieces(statement.substr(colon + 3));
    for (std::size_t i = 0; i < std::min(values.size(), types.size()); ++i) {
      const std::string value(values[i]), type(types[i]), pointer = "%out_" + std::to_string(outputs.size());
      const std::string element(type.starts_with("tensor<") ? elementOf(types[i]) : types[i]);
      outputs.push_back(pointer + ": !tile.ptr<" + element + ">");
      if (type == element) {
        text += "  tile.store " + pointer + ", " + value + " : !tile.ptr<" + element + ">\n";
        continue;
      }
      std::string pointers = type;
      pointers.replace(static_cast<std::size_t>(elementOf(types[i]).data() - types[i].data()), element.size(),
                       "!tile.ptr<" + element + ">");
      text += "  " + pointer + "_tile = tile.splat " + pointer + " : !tile.ptr<" + element + "> to " + pointers + "\n";
      text += "  tile.store " + pointer + "_tile, " + value + " : " + pointers + "\n";
    }
    text += "  return\n";
  }
  for (const std::string &output : outputs)
    parameters += (parameters.empty() ? "" : ", ") + output;
  return std::string(function.substr(0, open)) + "(" + parameters + ") attributes {tile.kernel" +
         (attributes.empty() ? "" : ", " + attributes) + "} {\n" + text;
}

std::string readAll(const std::filesystem::path &path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

} // namespace

std::vector<std::string> kernelsOf(std::string_view text) {
  struct Function {
    std::size_t begin, end;
  };
  std::vector<Function> functions;
  for (std::size_t at = text.find("func.func"); at != none; at = text.find("func.func", at)) {
    // The body is the first brace that ends a line.
    const std::size_t body = text.find("{\n", at);
    const std::size_t end = body == none ? none : closing(text, body);
    if (end == none)
      break;
    functions.push_back({at, end + 1});
    at = end;
  }
  std::vector<std::string> out;
  for (const Function &f : functions) {
    const std::string kernel = asKernel(text.substr(f.begin, f.end - f.begin));
    if (kernel.empty())
      continue;
    std::string module;
    std::size_t from = 0;
    for (const Function &other : functions) {
      module += text.substr(from, other.begin - from);
      if (other.begin == f.begin)
        module += kernel;
      from = other.end;
    }
    module += text.substr(from);
    out.push_back(std::move(module));
  }
  return out;
}

std::vector<Seed> seedsOfRepository(const std::string &root) {
  std::vector<std::filesystem::path> files;
  for (const char *folder : {"tests", "docs", "kernels"})
    for (const auto &entry : std::filesystem::recursive_directory_iterator(root + "/" + folder))
      if (entry.path().extension() == ".mlir")
        files.push_back(entry.path());
  std::ranges::sort(files);
  std::vector<Seed> out;
  for (const std::filesystem::path &file : files) {
    const std::string text = readAll(file);
    const std::string name = std::filesystem::relative(file, root).string();
    std::size_t section = 0;
    for (std::size_t begin = 0; begin < text.size(); ++section) {
      const std::size_t end = std::min(text.find("// -----", begin), text.size());
      const std::string clean = withoutComments(std::string_view(text).substr(begin, end - begin));
      const std::string where = name + ":" + std::to_string(section);
      if (!clean.empty())
        out.push_back({where, clean});
      std::size_t number = 0;
      for (std::string &kernel : kernelsOf(clean))
        if (kernel != clean)
          out.push_back({where + "." + std::to_string(number++), std::move(kernel)});
      begin = end + 8;
    }
  }
  return out;
}

} // namespace kiln::test
