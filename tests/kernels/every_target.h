// Runs a test body on every vector instruction set of this machine.
#pragma once

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <string>

#include "normlab/kernels/isa.h"

namespace normlab::testing {

template <class Body>
void on_every_target(const Body& body) {
  for (int64_t target : hwy::SupportedAndGeneratedTargets()) {
    if (target == HWY_SCALAR) continue;  // the twins, which have their own tests
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    SCOPED_TRACE(std::string(isa_name()));
    body();
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

}  // namespace normlab::testing
