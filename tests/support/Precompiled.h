// What nearly every test includes, compiled once.
#pragma once
#include "support/Precompiled.h"

#include <gtest/gtest.h>

namespace kiln::test::precompiled {

/// Never called: what expectations about JSON instantiate costs each file that has them three seconds.
inline void expectationsOfJson(const nlohmann::json &json) {
  EXPECT_EQ(json, json);
  EXPECT_EQ(json, 0);
  EXPECT_EQ(json, 0u);
  EXPECT_EQ(json, true);
  EXPECT_EQ(json, "");
  EXPECT_EQ(json, std::string());
  EXPECT_NE(json, json);
  EXPECT_NE(json, "");
  EXPECT_LT(json, 0);
  EXPECT_LE(json, 0);
  EXPECT_GT(json, 0);
  EXPECT_GE(json, 0);
  EXPECT_TRUE(json.at("").get<bool>()) << json << json.dump() << json.contains("");
  EXPECT_EQ(json.at("").get<std::string>(), std::string());
  EXPECT_EQ(nlohmann::json::parse(std::string()), json);
  EXPECT_EQ(json.at("").get<double>(), json.at("").get<int>());
  EXPECT_EQ(json.at("").get<unsigned>(), 0u);
}

} // namespace kiln::test::precompiled
