#include "runtime/door/TorchOperation.h"

#include "runtime/door/DoorTensor.h"
#include "runtime/door/OperationCall.h"
#include "support/Text.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <unordered_map>

namespace kiln::door {
namespace {

using namespace kernels;

constexpr std::size_t mostArguments = 48;    ///< of a call by position
constexpr std::size_t mostRemembered = 4096; ///< then it is forgotten and asked for again
constexpr double slowSeconds = 1;            ///< of a call on the emulator: the user is told what that is

/// What a call of some types and options needs.
struct Needs {
  struct Result {
    std::int32_t dtype; ///< torch's
    std::vector<std::int64_t> shape, strides;
    bool isPartial; ///< the call leaves some of it alone
  };
  std::vector<Result> results;
  std::int64_t workspace = -1; ///< bytes; -1: nobody asked yet
};

struct TextHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};

/// By the bytes that types and options are written as.
struct Memory {
  using All = std::unordered_map<std::string, Needs, TextHash, std::equal_to<>>;
  All all;
  All::value_type *last = nullptr; ///< the call before
  std::string key;                 ///< of the call; keeps its memory
};

std::string_view takeWord(std::string_view &words) {
  const std::string_view word = words.substr(0, words.find(' '));
  words.remove_prefix(std::min(word.size() + 1, words.size()));
  return word;
}

bool takeMark(std::string_view &word, char mark) {
  const bool is = word.ends_with(mark);
  word.remove_suffix(is);
  return is;
}

/// As torch has them: an extent of 0 counts as 1.
void writeDenseStrides(std::span<const std::int64_t> shape, std::int64_t *strides) {
  std::int64_t stride = 1;
  for (std::size_t d = shape.size(); d-- > 0; stride *= std::max<std::int64_t>(shape[d], 1))
    strides[d] = stride;
}

Failure internal(std::string message) {
  return {"InternalError", "kiln: " + std::move(message), {}, StatusCode::Internal};
}

} // namespace

/// A call in flight, and what it owns of torch's.
class TorchOperation::Running {
public:
  Running(const TorchOperation &op, TorchValue *stack) : op(op), torch(*op.torch), stack(stack) { take(); }
  Running(const Running &) = delete;
  Running &operator=(const Running &) = delete;
  ~Running() {
    for (std::size_t i = 0; i < owned; ++i)
      torch.aoti_torch_delete_tensor_object(own[i]);
    for (std::size_t i = 0; i < op.arguments.size(); ++i)
      if (op.arguments[i].kind == Kind::Text && texts[i])
        torch.torch_delete_string(texts[i]);
  }

  Failure run(Memory &remembered);

private:
  /// Takes what is on the stack; nothing of it is left there.
  void take();
  Failure readTensor(std::size_t argument);
  Failure describe(TorchTensor from, FfiTensor &to) const;
  void write(std::size_t argument);
  Failure need(Needs *&needs);
  Failure askForWorkspace(Needs &needs);
  Failure makeWorkspace(std::int64_t bytes);
  Failure make(const std::int64_t *shape, const std::int64_t *strides, std::size_t rank, std::int32_t dtype,
               const char *what, TorchTensor &out);
  Failure launch();
  Failure torchs(std::string what) const;
  template <typename T> void note(const T &value) {
    memory->key.append(reinterpret_cast<const char *>(&value), sizeof value);
  }
  bool isGpu() const { return first && first->deviceType == 2; }

  const TorchOperation &op;
  const TorchAbi &torch;
  TorchValue *stack;
  Memory *memory = nullptr;
  std::array<FfiValue, mostArguments> values; ///< of a call by position
  std::array<FfiTensor, mostArguments> windows;
  std::array<TorchTensor, mostArguments> given{}; ///< by argument
  std::array<TorchText, mostArguments> texts{};   ///< by argument
  std::array<TorchTensor, 3 * mostArguments> own;
  std::size_t owned = 0;
  FfiTensor workspace{};
  const FfiTensor *first = nullptr; ///< whose device the call is on
};

void TorchOperation::Running::take() {
  for (std::size_t i = 0; i < op.fields; ++i)
    values[i] = {ffiNone, 0, {0}};
  for (std::size_t i = 0; i < op.arguments.size(); ++i) {
    const Argument &a = op.arguments[i];
    TorchValue value = stack[i];
    if (a.isOptional) {
      if (!value)
        continue;
      auto *const box = reinterpret_cast<TorchValue *>(value);
      value = *box;
      delete box; // torch's headers do the same
    }
    FfiValue &to = values[a.place];
    switch (a.kind) {
    case Kind::Tensor:
      own[owned++] = given[i] = reinterpret_cast<TorchTensor>(value);
      break;
    case Kind::Flag:
      to.type = ffiFlag, to.whole = (value & 0xff) != 0;
      break;
    case Kind::Whole:
      to.type = ffiWhole, to.whole = static_cast<std::int64_t>(value);
      break;
    case Kind::Number:
      to.type = ffiNumber, std::memcpy(&to.number, &value, sizeof value);
      break;
    case Kind::Text:
      texts[i] = reinterpret_cast<TorchText>(value);
      to.type = ffiText;
      (void)torch.torch_string_c_str(texts[i], &to.text);
      break;
    }
  }
}

Failure TorchOperation::Running::describe(TorchTensor from, FfiTensor &to) const {
  std::int64_t rank = 0, *sizes = nullptr, *strides = nullptr;
  std::int32_t dtype = 0, type = 0;
  if (torch.aoti_torch_get_dim(from, &rank) || torch.aoti_torch_get_sizes(from, &sizes) ||
      torch.aoti_torch_get_strides(from, &strides) || torch.aoti_torch_get_dtype(from, &dtype) ||
      torch.aoti_torch_get_device_type(from, &type) || torch.aoti_torch_get_device_index(from, &to.device))
    return internal("torch does not say what a tensor is");
  to.data = nullptr;
  (void)torch.aoti_torch_get_data_ptr(from, &to.data); // without memory: refused by name
  const TorchAbi::DType *const row = torch.dtypeOf(dtype);
  to.deviceType = type == torch.cpu ? 1 : type == torch.cuda ? 2 : 12; // 12: an extension's
  to.device = std::max(to.device, 0);
  to.rank = static_cast<std::int32_t>(rank);
  to.code = row ? row->code : 255, to.bits = row ? row->bits : 0, to.lanes = 1;
  to.shape = sizes, to.strides = strides, to.byteOffset = 0;
  return {};
}

Failure TorchOperation::Running::readTensor(std::size_t i) {
  const Argument &a = op.arguments[i];
  FfiTensor &window = windows[a.place];
  if (Failure f = describe(given[i], window); !f.kind.empty()) {
    const TensorParameter &p = tableOf(*op.family).table.tensors[a.place]; // None comes as a tensor that is none
    return {"TypeError", argumentText(op.name, p.name) + " is missing", "give " + p.description};
  }
  FfiValue &to = values[a.place];
  to.type = ffiTensorPointer, to.object = &window;
  if (!first)
    first = &window;
  // As FlashAttention does.  Gradients of sums come with strides of 0.
  if (a.isNeverCopied || window.deviceType != 2 || window.rank == 0 || window.strides[window.rank - 1] == 1)
    return {};
  if (window.deviceType != first->deviceType || window.device != first->device)
    return {}; // refused by name
  std::int32_t dtype = 0;
  TorchTensor dense = nullptr;
  std::array<std::int64_t, Tensor::maxRank> strides{};
  if (window.rank > static_cast<std::int32_t>(Tensor::maxRank))
    return {}; // refused by name
  writeDenseStrides({window.shape, static_cast<std::size_t>(window.rank)}, strides.data());
  (void)torch.aoti_torch_get_dtype(given[i], &dtype);
  if (Failure f =
          make(window.shape, strides.data(), static_cast<std::size_t>(window.rank), dtype, "a dense copy", dense);
      !f.kind.empty())
    return f;
  if (torch.aoti_torch_copy_(dense, given[i], 1))
    return torchs("torch did not make a dense copy");
  return describe(dense, window);
}

/// Why a function of torch's failed: without its own words, which older versions keep to themselves, memory.
Failure TorchOperation::Running::torchs(std::string what) const {
  const char *const why =
      torch.torch_exception_get_what_without_backtrace ? torch.torch_exception_get_what_without_backtrace() : "";
  const std::string_view told = why ? why : "";
  const bool isMemory = told.empty() || told.find("out of memory") != told.npos;
  return {isMemory ? "OutOfMemoryError" : "DeviceError",
          op.name + ": " + what + (told.empty() ? "" : ": " + std::string(told)),
          isMemory ? "give smaller tensors, or free some" : "look at what ran before on this device"};
}

/// Adds the argument to the key.
void TorchOperation::Running::write(std::size_t i) {
  const Argument &a = op.arguments[i];
  const FfiValue &value = values[a.place];
  if (a.kind == Kind::Tensor && given[i]) {
    const FfiTensor &w = windows[a.place];
    note(static_cast<std::uint32_t>(w.rank << 16 | w.code << 8 | w.bits));
    memory->key.append(reinterpret_cast<const char *>(w.shape), static_cast<std::size_t>(w.rank) * sizeof *w.shape);
  } else if (a.kind == Kind::Text && texts[i]) {
    const auto size = static_cast<std::uint32_t>(std::strlen(value.text));
    note(size);
    memory->key.append(value.text, size);
  } else if (value.type == ffiNone) {
    note(std::uint32_t(-1));
  } else {
    note(static_cast<std::uint32_t>(value.type));
    note(value.whole);
  }
}

Failure TorchOperation::Running::need(Needs *&needs) {
  memory->key.clear();
  note(isGpu() ? first->device : -1);
  for (std::size_t i = 0; i < op.arguments.size(); ++i)
    write(i);
  if (memory->last && memory->key == memory->last->first) {
    needs = &memory->last->second;
    return {};
  }
  auto found = memory->all.find(memory->key);
  if (found == memory->all.end()) {
    for (const Output &o : op.outputs)
      values[o.place] = {ffiFlag, 0, {1}};
    TensorTypes types;
    Failure f = outputsOf(*op.family, {values.data(), op.fields - 1}, types);
    if (!f.kind.empty())
      return f;
    Needs made;
    for (const Output &o : op.outputs) {
      if (o.input >= 0)
        continue;
      const auto type = types.find(o.name);
      const DlType dl = type == types.end() ? DlType{} : dlTypeOf(type->second.dtype);
      const TorchAbi::DType *const row = type == types.end() ? nullptr : torch.dtypeOf(dl.code, dl.bits);
      if (!row)
        return internal(op.name + ": torch has no tensor as the output '" + std::string(o.name) + "' is");
      Needs::Result &r = made.results.emplace_back(Needs::Result{row->torch, {}, {}, o.isFilled && type->second.rest});
      for (const std::uint64_t extent : type->second.shape)
        r.shape.push_back(static_cast<std::int64_t>(extent));
      r.strides.resize(r.shape.size());
      writeDenseStrides(r.shape, r.strides.data());
    }
    if (memory->all.size() >= mostRemembered)
      memory->last = nullptr, memory->all.clear();
    found = memory->all.emplace(memory->key, std::move(made)).first;
  }
  memory->last = &*found;
  needs = &found->second;
  return {};
}

Failure TorchOperation::Running::make(const std::int64_t *shape, const std::int64_t *strides, std::size_t rank,
                                      std::int32_t dtype, const char *what, TorchTensor &out) {
  if (torch.aoti_torch_empty_strided(static_cast<std::int64_t>(rank), shape, strides, dtype,
                                     isGpu() ? torch.cuda : torch.cpu, first ? first->device : 0, &out)) {
    std::string extents;
    for (std::size_t d = 0; d < rank; ++d)
      extents += (d ? "x" : "") + std::to_string(shape[d]);
    return torchs("torch has no memory for " + std::string(what) + " of " + extents + " elements");
  }
  own[owned++] = out;
  return {};
}

Failure TorchOperation::Running::askForWorkspace(Needs &needs) {
  std::size_t bytes = 0;
  values[op.fields - 1] = {ffiNone, 0, {0}};
  Failure f = workspaceOf(*op.family, {values.data(), op.fields}, bytes);
  if (f.kind.empty())
    needs.workspace = static_cast<std::int64_t>(bytes);
  return f;
}

/// Of no bytes: given, and without memory.
Failure TorchOperation::Running::makeWorkspace(std::int64_t bytes) {
  constexpr std::int64_t stride = 1;
  workspace = {nullptr, 2, first->device, 1, 1, 8, 1, nullptr, nullptr, 0};
  static constexpr std::int64_t none = 0;
  workspace.shape = &none, workspace.strides = nullptr;
  if (bytes) {
    TorchTensor made = nullptr;
    const TorchAbi::DType *const byte = torch.dtypeOf(1, 8);
    if (Failure f = make(&bytes, &stride, 1, byte ? byte->torch : 0, "a workspace", made); !f.kind.empty())
      return f;
    if (Failure f = describe(made, workspace); !f.kind.empty())
      return f;
  }
  FfiValue &to = values[op.fields - 1];
  to.type = ffiTensorPointer, to.object = &workspace;
  return {};
}

Failure TorchOperation::Running::launch() {
  Surroundings where;
  if (torch.aoti_torch_get_current_cuda_stream &&
      torch.aoti_torch_get_current_cuda_stream(first->device, &where.stream))
    return internal("torch does not say its current stream");
  return door::run(*op.family, {values.data(), op.fields}, &where);
}

Failure TorchOperation::Running::run(Memory &remembered) {
  memory = &remembered;
  for (std::size_t i = 0; i < op.tensors; ++i)
    if (given[i])
      if (Failure f = readTensor(i); !f.kind.empty())
        return f;
  Needs *needs = nullptr;
  if (Failure f = need(needs); !f.kind.empty())
    return f;
  std::array<TorchTensor, mostArguments> results;
  std::size_t count = 0;
  for (const Output &o : op.outputs) {
    FfiValue &to = values[o.place];
    if (o.input >= 0) {
      to = values[op.arguments[static_cast<std::size_t>(o.input)].place];
      continue;
    }
    const Needs::Result &r = needs->results[count];
    TorchTensor &made = results[count++];
    if (Failure f = make(r.shape.data(), r.strides.data(), r.shape.size(), r.dtype, "an output", made); !f.kind.empty())
      return f;
    if (r.isPartial && torch.aoti_torch_zero_(made))
      return torchs("torch did not set an output to 0");
    FfiTensor &window = windows[o.place];
    if (Failure f = describe(made, window); !f.kind.empty())
      return f;
    to.type = ffiTensorPointer, to.object = &window;
  }
  Failure wrong;
  if (isGpu()) {
    if (needs->workspace < 0)
      if (Failure f = askForWorkspace(*needs); !f.kind.empty())
        return f;
    const std::int64_t had = needs->workspace;
    if (Failure f = makeWorkspace(had); !f.kind.empty())
      return f;
    wrong = launch();
    if (wrong.kind == "ValueError") { // the workspace may have become too small
      Failure f = askForWorkspace(*needs);
      if (f.kind.empty() && needs->workspace > had)
        wrong = (f = makeWorkspace(needs->workspace)).kind.empty() ? launch() : f;
    }
  } else {
    const auto begin = std::chrono::steady_clock::now();
    wrong = door::run(*op.family, {values.data(), op.fields});
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    static std::atomic_flag isTold;
    if (seconds > slowSeconds && wrong.kind.empty() && !isTold.test_and_set())
      torch.aoti_torch_warn("kiln", "kiln", 0,
                            format("kiln::%s took %.1f s: tensors on the CPU run on Kiln's emulator of a GPU, which is "
                                   "for tests and finds defects; move the tensors to a GPU for speed",
                                   op.name.c_str(), seconds)
                                .c_str());
  }
  if (!wrong.kind.empty())
    return wrong;
  // The results are the caller's now.
  for (std::size_t i = 0; i < count; ++i) {
    stack[i] = reinterpret_cast<TorchValue>(results[i]);
    *std::find(own.begin(), own.begin() + owned, results[i]) = own[owned - 1];
    --owned;
  }
  return {};
}

const char *TorchOperation::run(TorchValue *stack) const {
  static thread_local std::unordered_map<const TorchOperation *, Memory> memories;
  static thread_local std::string message;
  try {
    const Failure wrong = Running(*this, stack).run(memories[this]);
    if (wrong.kind.empty())
      return nullptr;
    message = "kiln." + wrong.kind + ": " + wrong.toString();
    return message.c_str();
  } catch (const std::bad_alloc &) {
    return "kiln.MemoryError: the host has no memory left";
  } catch (...) {
    return "kiln.InternalError: an operation of kiln ended by an exception (report it)";
  }
}

Failure TorchOperation::placeOf(std::string_view word, std::size_t &place) const {
  const CallTable &table = tableOf(*family).table;
  const auto tensor = std::ranges::find(table.tensors, word, &TensorParameter::name);
  const auto option = std::ranges::find(table.options, word, &OptionInfo::name);
  if (tensor == table.tensors.end() && option == table.options.end())
    return failureOf(
        table.name, Status::invalid(table.name + ": it has no argument '" + std::string(word) + "'", "give its names"));
  place = tensor != table.tensors.end()
              ? static_cast<std::size_t>(tensor - table.tensors.begin())
              : table.tensors.size() + static_cast<std::size_t>(option - table.options.begin());
  return {};
}

Failure TorchOperation::readNames(const Names &names) {
  const CallTable &table = tableOf(*family).table;
  fields = table.tensors.size() + table.options.size() + 1;
  std::vector<std::string_view> inputs;
  for (std::string_view rest = names.inputs; !rest.empty();) {
    Argument &a = arguments.emplace_back();
    std::string_view &word = inputs.emplace_back(takeWord(rest));
    a.isOptional = takeMark(word, '?'), a.isNeverCopied = takeMark(word, '!');
    if (Failure f = placeOf(word, a.place); !f.kind.empty())
      return f;
  }
  tensors = arguments.size();
  for (std::string_view rest = names.options; !rest.empty();) {
    Argument &a = arguments.emplace_back();
    if (Failure f = placeOf(takeWord(rest), a.place); !f.kind.empty())
      return f;
    constexpr Kind kinds[] = {Kind::Flag, Kind::Whole, Kind::Number, Kind::Text, Kind::Text};
    a.kind = kinds[static_cast<std::size_t>(table.options[a.place - table.tensors.size()].kind)];
  }
  for (std::string_view rest = names.outputs; !rest.empty();) {
    std::string_view word = takeWord(rest);
    Output &o = outputs.emplace_back();
    o.isFilled = takeMark(word, '*');
    const std::size_t is = word.find('=');
    if (Failure f = placeOf(word.substr(0, is), o.place); !f.kind.empty())
      return f;
    o.name = table.tensors[o.place].name;
    if (is == word.npos)
      continue;
    const auto input = std::ranges::find(inputs, word.substr(is + 1));
    if (input == inputs.end())
      return internal(std::string(word) + " is no input of the schema");
    o.input = static_cast<int>(input - inputs.begin());
  }
  return {};
}

Failure TorchOperation::create(const Family &family, const TorchAbi &torch, std::string_view name, const Names &names,
                               std::unique_ptr<TorchOperation> &out) {
  std::unique_ptr<TorchOperation> made(new TorchOperation(family, torch));
  made->name = name;
  if (Failure f = made->readNames(names); !f.kind.empty())
    return f;
  if (made->fields <= mostArguments)
    out = std::move(made);
  return {};
}

} // namespace kiln::door
