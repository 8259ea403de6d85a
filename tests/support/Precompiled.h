// What nearly every test includes, compiled once.
#pragma once
#include "support/Precompiled.h"

#include <gtest/gtest.h>
