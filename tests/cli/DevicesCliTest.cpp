#include "compiler/target/Target.h"
#include "tests/cli/Program.h"

#include <nlohmann/json.hpp>

namespace kiln::test {
namespace {

class DevicesCliTest : public CliTest {};

TEST_F(DevicesCliTest, ListsEveryTarget) {
  for (const std::vector<std::string> &arguments : {std::vector<std::string>{"devices"}, {"devices", "--report"}}) {
    const Outcome o = kiln(arguments);
    EXPECT_EQ(o.status, 0) << o.err;
    for (const Target &t : allTargets())
      EXPECT_NE(o.out.find("emulator:" + std::string(t.name)), std::string::npos);
  }
  EXPECT_NE(kiln({"devices", "--report"}).out.find("232448 opted in"), std::string::npos); // 227 KiB of sm_90
}

TEST_F(DevicesCliTest, Json) {
  const Outcome o = kiln({"devices", "--json"});
  ASSERT_EQ(o.status, 0);
  const auto j = nlohmann::json::parse(o.out);
  EXPECT_GE(j["devices"].size(), allTargets().size());
  for (const auto &d : j["devices"])
    if (d["name"] == "emulator:sm_90a") {
      EXPECT_EQ(d["sm"], 90);
      EXPECT_EQ(d["limits"]["sharedOptIn"], 227 * 1024);
    }
}

TEST_F(DevicesCliTest, AGpuComesFirst) {
  const Outcome o = kiln({"devices"}, fakeDriver());
  EXPECT_EQ(o.status, 0);
  EXPECT_NE(o.out.find("\ncuda:0            Fake GPU      9.0         128.0 GiB  CUDA 12.9\nemulator:sm_75 "),
            std::string::npos)
      << o.out;
  EXPECT_EQ(o.out.find("no CUDA driver"), std::string::npos);
}

} // namespace
} // namespace kiln::test
