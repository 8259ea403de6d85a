//===- Language.h - The whole front end --------------------------------------===//
#ifndef KILN_LANGUAGE_LANGUAGE_H
#define KILN_LANGUAGE_LANGUAGE_H

#include "Checks.h"
#include "Control.h"
#include "Debug.h"
#include "Dot.h"
#include "Dual.h"
#include "Kernel.h"
#include "Layout.h"
#include "Math.h"
#include "Memory.h"
#include "OrderedAtomics.h"
#include "Pipeline.h"
#include "Ptx.h"
#include "Random.h"
#include "Reduce.h"
#include "Shapes.h"
#include "Sort.h"
#include "Tensor.h"
#include "Triangular.h"
#include "View.h"

#endif // KILN_LANGUAGE_LANGUAGE_H
