// `kiln explain`: what a layout is, how a tensor moves from one layout to another, and what became of a kernel.
#include "compiler/layout/Explain.h"
#include "compiler/layout/LayoutPicture.h"
#include "compiler/layout/LayoutText.h"
#include "runtime/io/File.h"
#include "runtime/tools/Commands.h"
#include "runtime/tools/KernelExplain.h"
#include "support/Text.h"

#include <CLI/CLI.hpp>

#include <cstdio>

namespace kiln::tools {

namespace {

using layout::InDim;
using layout::LayoutText;

struct Options {
  std::string layout, to, target = "sm_90a", svg;
  unsigned bits = 0;
  std::uint64_t scratchBytes = layout::defaultScratchBytes;
  bool json = false;
};

/// A text and the layout it describes.
struct Described {
  LayoutText text;
  std::variant<layout::TileLayout, layout::SharedTile> tile;
  const layout::TileLayout *distributed() const { return std::get_if<layout::TileLayout>(&tile); }
  const layout::SharedTile *shared() const { return std::get_if<layout::SharedTile>(&tile); }
  const layout::LinearLayout &core() const { return distributed() ? distributed()->core() : shared()->core(); }
};

Result<Described> describe(LayoutText text, unsigned bits) {
  if (!text.shape)
    return Status::invalid("layout '" + layout::print(text) + "' has no shape", "write one after it: ... : 64x64");
  if (text.isShared()) {
    KILN_ASSIGN(auto tile,
                layout::SharedTile::create(std::get<layout::SharedEncoding>(text.encoding), *text.shape, bits));
    return Described{std::move(text), std::move(tile)};
  }
  KILN_ASSIGN(auto tile, layout::lowerDistributed(text));
  return Described{std::move(text), std::move(tile)};
}

class Explain {
public:
  explicit Explain(const Options &options) : o(options) {}

  int operator()() {
    Status s = explain();
    if (!s.ok())
      return fail("explain", s, o.json);
    report["status"] = 0;
    if (o.json)
      printJson(report);
    else
      std::fputs(output.c_str(), stdout);
    return 0;
  }

private:
  Status explain() {
    KILN_ASSIGN(const Target *target, findTarget(o.target));
    KILN_ASSIGN(LayoutText first, parse("--layout", o.layout));
    LayoutText second = first;
    if (!o.to.empty()) {
      KILN_ASSIGN(second, parse("--to", o.to));
      // What one text leaves out, the other says.
      if (!second.shape)
        second.shape = first.shape;
      if (!first.shape)
        first.shape = second.shape;
      if (second.elementType.empty())
        second.elementType = first.elementType;
      if (first.elementType.empty())
        first.elementType = second.elementType;
    }
    unsigned bits = o.bits;
    if (!bits && !first.elementType.empty()) {
      KILN_ASSIGN(bits, layout::elementTypeBits(first.elementType));
    }
    if (!bits)
      bits = 32;
    KILN_ASSIGN(const Described from, describe(std::move(first), bits));
    if (o.to.empty())
      show(from);
    else {
      KILN_ASSIGN(const Described to, describe(std::move(second), bits));
      KILN_TRY(move(from, to, bits, *target));
    }
    return o.svg.empty() ? Status() : writeSvg(from);
  }

  static Result<LayoutText> parse(const char *option, const std::string &text) {
    Result<LayoutText> parsed = layout::parseLayout(text);
    if (!parsed)
      return parsed.takeStatus().withContext(option);
    return parsed;
  }

  void show(const Described &d) {
    const std::string text = layout::print(d.text);
    report["layout"] = text;
    output += text + "\n";
    if (const layout::TileLayout *tile = d.distributed()) {
      const layout::LinearLayout &core = tile->core();
      report["registers"] = tile->registers();
      report["lanes"] = core.size(InDim::Lane);
      report["warps"] = core.size(InDim::Warp);
      report["blocks"] = core.size(InDim::Block);
      report["repetitions"] = tile->repetitions();
      report["bases"] = tile->text();
      output += layout::table(*tile);
    } else {
      const layout::SharedTile &shared = *d.shared();
      report["bytes"] = shared.bytes();
      report["alignment"] = shared.alignment();
      report["elementBits"] = shared.bits();
      output += layout::table(shared);
    }
  }

  Status move(const Described &from, const Described &to, unsigned bits, const Target &target) {
    report["layout"] = layout::print(from.text);
    report["to"] = layout::print(to.text);
    output += "from " + layout::print(from.text) + "\nto   " + layout::print(to.text) + "\n\n";
    if (from.shared() && to.shared())
      return Status::invalid("both layouts are of shared memory", "name a distributed layout on one side");
    if (from.distributed() && to.distributed()) {
      KILN_ASSIGN(const auto plan, layout::planTileConversion(*from.distributed(), *to.distributed(), bits, target,
                                                              {.scratchBytes = o.scratchBytes,
                                                               .neighbours = layout::isInstructionOperand(
                                                                   std::get<layout::Encoding>(to.text.encoding))}));
      add(layout::explain(plan), layout::toJson(plan));
      return {};
    }
    const bool store = to.shared();
    KILN_ASSIGN(const auto plan, layout::planLocalAccess(store ? from.core() : to.core(),
                                                         store ? to.core() : from.core(), bits, target, store));
    add(layout::explain(plan), layout::toJson(plan));
    return {};
  }

  void add(const std::string &text, const std::string &json) {
    output += text;
    if (!text.ends_with('\n'))
      output += '\n';
    Json plan = Json::parse(json, nullptr, /*allow_exceptions=*/false);
    report["plan"] = plan.is_discarded() ? Json(json) : std::move(plan);
  }

  Status writeSvg(const Described &d) {
    const std::string title = layout::print(d.text);
    KILN_ASSIGN(OutputFile file, OutputFile::create(o.svg));
    KILN_TRY(file.write(d.distributed() ? layout::svg(*d.distributed(), title) : layout::svg(*d.shared(), title)));
    KILN_TRY(file.commit());
    report["svg"] = o.svg;
    output += "picture: " + o.svg + "\n";
    return {};
  }

  const Options &o;
  std::string output;
  Json report = Json::object();
};

} // namespace

void addExplainCommand(CLI::App &app, int &exitStatus) {
  auto *command = app.add_subcommand("explain", "Explain a kernel, a layout, or the conversion from one to another");
  auto o = std::make_shared<Options>();
  auto k = std::make_shared<KernelExplainOptions>();
  command->add_option("kernel", k->kernel, "A kernel of the library, or a text file FILE.mlir")
      ->type_name("KERNEL|FILE");
  command->add_option("--layout", o->layout, "A layout and its shape, as text")->type_name("TEXT");
  command->add_option("--to", o->to, "Explain how a tensor moves to this layout; shape and type as in --layout")
      ->type_name("TEXT")
      ->needs("--layout");
  command->add_option("--bits", o->bits, "Bits of an element; by default those of the element type, else 32")
      ->type_name("N")
      ->needs("--layout");
  command->add_option("--target", o->target, "The GPU that is compiled or planned for")
      ->type_name("TARGET")
      ->capture_default_str();
  command->add_option("--scratch", o->scratchBytes, "Shared memory that the conversion may use")
      ->type_name("BYTES")
      ->capture_default_str()
      ->needs("--layout");
  for (CLI::Option *option :
       {command->add_option("--entry", k->entry, "The kernel of a file; not needed if there is one")->type_name("NAME"),
        command
            ->add_option("--dtype", k->dtype,
                         "Element type of a library kernel: f32, f16, bf16 (default: f32, of attention bf16)")
            ->type_name("DTYPE"),
        command->add_option("--set", k->settings, "NAME=VALUE of a library kernel's configuration, such as block=2048")
            ->type_name("NAME=VALUE"),
        command
            ->add_option("--divisible", k->divisible,
                         "ARGUMENT=N: compile for values divisible by N.  Without --divisible and --equals: as for "
                         "dense, aligned tensors with rows of whole 16 bytes")
            ->type_name("ARGUMENT=N"),
        command->add_option("--equals", k->equals, "ARGUMENT=N: compile for this value")->type_name("ARGUMENT=N"),
        command->add_flag("--no-tensor-maps", k->noTensorMaps,
                          "As for tensors that no tensor map can describe: passes make none"),
        command->add_option("--draw", k->draw, "Which of a kernel's layouts --svg draws, by its letter")
            ->type_name("LETTER")
            ->capture_default_str(),
        command->add_flag("--predict", k->predict,
                          "Also what calls of a library kernel would take on the target, and what limits them, by the "
                          "performance model"),
        command
            ->add_option("--with", k->with,
                         "NAME=SHAPE or NAME=V of the calls that are predicted, as in kiln bench; default: its own")
            ->type_name("NAME=V")
            ->allow_extra_args(false),
        command->add_flag("--rejected", k->plans, "Of each conversion also the strategies not taken, and why")})
    option->needs("kernel");
  command->add_option("--svg", o->svg, "Draw --layout, or a kernel's layout, to a file")->type_name("FILE");
  command->add_flag("--json", o->json, "One JSON object on standard output");
  command->footer("Examples:\n"
                  "  kiln explain softmax --target sm_90a --dtype bf16\n"
                  "  kiln explain attention --target sm_80 --set right=true --set lse=true\n"
                  "  kiln explain transpose --target sm_80 --equals x_stride_1=1 --svg tile.svg --draw B\n"
                  "  kiln explain docs/examples/scale.mlir --target sm_89 --json\n"
                  "  kiln explain softmax --target sm_90a --predict --with x=8192x4096\n"
                  "  kiln explain --layout 'blocked<sizePerThread=[1,4], threadsPerWarp=[8,4], warpsPerCTA=[4,1], "
                  "order=[1,0]> : 32x16'\n"
                  "  kiln explain --layout 'mma<version=2, warpsPerCTA=[2,2]> : 64x64xf16' --svg mma.svg\n"
                  "  kiln explain --layout 'mma<version=3, warpsPerCTA=[4,1], instrN=64> : 64x64xf16' --to "
                  "'tma<swizzle=128>' --target sm_90a\n"
                  "Registers and spills are shown where nvJitLink or ptxas is found.\n"
                  "Exit status: 0 good, 2 input, 3 compile.");
  command->callback([o, k, &exitStatus] {
    if (k->kernel.empty() == o->layout.empty()) {
      exitStatus =
          fail("explain",
               Status::invalid(k->kernel.empty() ? "there is nothing to explain: neither a kernel nor --layout"
                                                 : "--layout and the kernel '" + k->kernel + "' exclude each other",
                               "see kiln explain --help"),
               o->json);
      return;
    }
    if (k->kernel.empty()) {
      exitStatus = Explain(*o)();
      return;
    }
    k->target = o->target;
    k->svg = o->svg;
    k->json = o->json;
    exitStatus = explainKernel(*k);
  });
}

} // namespace kiln::tools
