// Loss of a model over windows of a text.
#pragma once

#include <optional>
#include <span>

#include "normlab/base/stop.h"
#include "normlab/data/batch.h"
#include "normlab/models/decoder_lm.h"
#include "normlab/ranks/ranks.h"

namespace normlab {

// Mean loss in nats per token; nothing when stopped before the end. With `ranks` each takes some of the batches, and
// all get the mean of all; they cannot be stopped.
std::optional<double> evaluate(const DecoderLm& model, const Tokens& tokens, std::span<const EvalWindow> windows,
                               int batch_size, const StopToken& stop = never_stop, RankGroup* ranks = nullptr);

}  // namespace normlab
