#include "runtime/tools/RunOptions.h"

#include "runtime/tools/LibraryRun.h"
#include "support/ParseNumber.h"
#include "support/Text.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cctype>

namespace kiln::tools {

void addRunOptions(CLI::App &c, RunOptions &o) {
  c.add_option("file", o.file, "A kernel of the library, a text kernel (.mlir), PTX text, or a cubin (on a GPU)")
      ->required()
      ->type_name("KERNEL|FILE");
  c.add_option(
       "--entry", o.entry,
       "The kernel; not needed if the file has one. PTX: a part of the name will do, demangled or not, or its number")
      ->type_name("NAME");
  c.add_option("--grid", o.grid, "Blocks (programs of a text kernel): X, X,Y or X,Y,Z; for files")->type_name("DIMS");
  c.add_option("--block", o.block, "Threads of a block: X, X,Y or X,Y,Z; for PTX")->type_name("DIMS");
  c.add_option("--cluster", o.cluster, "Blocks of a cluster; by default as the kernel declares")->type_name("DIMS");
  c.add_option("--shared", o.sharedBytes, "Dynamic shared memory of a block, in bytes")->type_name("BYTES");
  c.add_flag("--cooperative", o.cooperative, "PTX: all blocks run at the same time, for grid.sync()");
  c.add_option("--arg", o.arguments, "One argument, in the order of the parameters; see below")
      ->type_name("ARG")
      ->allow_extra_args(false);
  c.add_option("--buffer", o.buffers,
               "A buffer that is no argument: NAME=ARG with an ARG that is one; arg:NAME and tmap:NAME:.. refer to it")
      ->type_name("NAME=ARG")
      ->allow_extra_args(false);
  c.add_option("--output", o.outputs,
               "Write the buffer of argument N (from 0), or that of --buffer NAME, to FILE; may occur often. "
               "Of a library kernel: FILE.npy for its first output")
      ->type_name("N:FILE.npy")
      ->allow_extra_args(false);
  c.add_option("--device", o.device, "auto (default), cuda:N or emulator:TARGET")->type_name("NAME");
  c.add_option("--target", o.target, "The same as --device emulator:TARGET")->type_name("TARGET");
  addCodeTarget(c, o);
  c.add_option("--repeat", o.repeat, "Launches, each from the same inputs")->type_name("N");
  c.add_option("--dtype", o.dtype, "Library kernels: type of the inputs; default: the file's, f32 for f64")
      ->type_name("DTYPE");
  c.add_flag("--time", o.time, "Print the launches' times");
  c.add_flag("--explain-miss", o.explainMiss,
             "Of a kernel that had to be compiled: every text of its key that differs from the nearest cache entry's");
  c.add_flag("--no-checks", o.noChecks, "Emulator: only the checks that cost no time; bounds are always checked");
  c.add_flag(
      "--counters", o.counters,
      "Emulator: count instructions, sectors, wavefronts, bank conflicts, barriers, FLOPs; in all and by source line");
  c.add_flag("--first-nan", o.emulator.firstNan,
             "Emulator: report each instruction whose result is NaN though no operand is, or infinite of finite ones");
  c.add_option("--dump-tiles", o.emulator.tileDirectory, "Emulator: where tiles go that a kernel dumps (dumpTile)")
      ->type_name("DIR");
  c.add_option("--timeline", o.timeline, "Emulator: draw what the warps of one block do and wait for; .svg or .html")
      ->type_name("FILE");
  c.add_option("--timeline-block", o.timelineBlock, "Which block of the grid; default: 0,0,0")->type_name("X,Y,Z");
  c.add_option("--timeline-launch", o.timelineLaunch, "Which launch, from 0, of a kernel that has several")
      ->type_name("N");
  c.add_option("--threads", o.emulator.hostThreads, "Emulator: host threads; 0: one a core")->type_name("N");
  c.add_option("--instruction-budget", o.emulator.instructionBudget,
               "Emulator: end a launch after N warp instructions; 0: 2^40")
      ->type_name("N");
  c.add_option("--timeout", o.emulator.secondsBudget, "Emulator: end a launch after S seconds; 0: never")
      ->type_name("S");
  c.add_flag("--json", o.json, "One JSON object on standard output");
  c.footer(
      "Kernels of the library:\n" + libraryHelp() +
      "--input names the first input, --output the first output. dtype: f32, f16, bf16 (fp32 files are rounded).\n"
      "Arguments of files (ARG):\n"
      "  x.npy                a buffer with the file's data; --output writes it back after the launch\n"
      "  bf16:x.npy           the file's fp32 values rounded to bf16, f16, e4m3 or e5m2, or its raw bits (uint16, "
      "uint8)\n"
      "  out:DTYPE:16x100     a new buffer, filled with 0xCD; DTYPE by NumPy's name or the short one: float32, f32, "
      "bf16\n"
      "  zeros:DTYPE:16x100   the same, filled with zeros\n"
      "  x.npy+256            a pointer 256 bytes past the start of its buffer; also of out: and zeros:\n"
      "  arg:0+256 arg:q      a pointer into the buffer of argument 0, or of --buffer q\n"
      "  i32:V f32:V ...      a number: i8 to i64, u8 to u64, f16, bf16, f32, f64; b8 to b64 are raw bits\n"
      "  ptr:0                a null pointer, or any address\n"
      "  bytes:x.npy          the file's data by value, for a struct parameter\n"
      "  tmap:q:f16:64x64:swizzle=128B  a tensor map over a buffer: type, box; also dims=, strides= (bytes), steps=,\n"
      "                       interleave=, promotion=, fill=; lists with the outermost dimension first\n"
      "  struct:zeros:160@0=arg:q@128=i32:7  a struct of so many zeros, or of a file's bytes (struct:x.npy@..), with\n"
      "                       pointers, tensor maps and numbers put in at these bytes\n"
      "Outputs are written only if the launch succeeds without findings; bf16, e4m3 and e5m2 are written as float32.\n"
      "A text kernel's pointers take files of their element type (or bits of its size for integers); its block and\n"
      "shared memory are its own.\n"
      "Examples:\n"
      "  kiln run softmax --input x.npy --output y.npy --dtype bf16 --device emulator:sm_90a\n"
      "  kiln run docs/examples/scale.mlir --grid 2 --arg x.npy --arg out:f32:1000 --arg f32:-0.5 --arg i32:1000 "
      "--output 1:y.npy\n"
      "  kiln run docs/examples/vector.ptx --entry scale --grid 8 --block 128 --arg x.npy --arg out:f32:10x100 --arg "
      "f32:2 --arg u32:1000 --output 1:y.npy\n"
      "  kiln run docs/examples/vector.ptx --entry iota --grid 8 --block 128 --arg out:f32:1000 --arg u32:1000 "
      "--device "
      "cuda:0 --repeat 20 --time\n"
      "Exit status: 0 good, 1 findings, 2 input, 3 compile, 4 device.");
}

void addCodeTarget(CLI::App &c, RunOptions &o) {
  c.add_option("--code-target", o.codeTarget,
               "Library kernels: what their code may use; default: all that the device has")
      ->type_name("TARGET");
}

Status checkBudgets(const EmulatorOptions &options) {
  if (!(options.secondsBudget >= 0 && options.secondsBudget < 1e9))
    return Status::invalid(format("--timeout %g is not between 0 and 10^9 seconds", options.secondsBudget),
                           "0 is no limit");
  if (options.hostThreads > 1024)
    return Status::invalid("--threads " + std::to_string(options.hostThreads) + " is more than 1024",
                           "0 is one for each core");
  return {};
}

Result<Dim3> parseDims(const std::string &option, const std::string &text) {
  std::uint32_t values[3] = {1, 1, 1};
  const std::vector<std::string_view> pieces = split(text, ',');
  bool good = pieces.size() <= 3;
  for (std::size_t i = 0; good && i < pieces.size(); ++i) {
    values[i] = parseNumber<std::uint32_t>(pieces[i]).value_or(0);
    good = values[i] > 0;
  }
  if (!good)
    return Status::invalid(option + " '" + text + "' is not one to three positive numbers with commas between",
                           "write it as " + option + " 4,1,1");
  return Dim3{values[0], values[1], values[2]};
}

Result<OutputRequest> parseOutputRequest(const std::string &text) {
  // A name that is no number starts with no digit; a file's name may hold colons.
  const std::size_t colon = text.find(':');
  const std::string word = text.substr(0, colon);
  const auto isDigit = [](unsigned char c) { return std::isdigit(c) != 0; };
  const bool isNumber = std::all_of(word.begin(), word.end(), isDigit) && word.size() < 10;
  const bool isName =
      !word.empty() && !isDigit(static_cast<unsigned char>(word[0])) &&
      std::all_of(word.begin(), word.end(), [](unsigned char c) { return std::isalnum(c) || c == '_'; });
  if (word.empty() || colon == std::string::npos || colon + 1 == text.size() || (!isNumber && !isName))
    return Status::invalid("--output '" + text + "' is not N:FILE",
                           "write the argument's number, from 0, or a buffer's name: --output 3:y.npy");
  return OutputRequest{word, 0, text.substr(colon + 1)};
}

} // namespace kiln::tools
