// What attention computes: the part of a scheme that ops and kernels read, its factors resolved to numbers.
#pragma once

namespace normlab {

enum class QkNorm { none, lp, rms, layer };
enum class QkScope { head, all_heads };          // what one norm is taken over
enum class QkOrder { before_rope, after_rope };  // commutes with the rotation only for p = 2 without channel gains
enum class RopePairing { interleaved, half };    // pairs (2i, 2i + 1), or (i, i + d/2)
enum class RowScale { one, log_n };

// Fields as in NormScheme.
struct AttentionForm {
  QkNorm qk = QkNorm::none;
  double p = 2.0;  // unless it is learned
  int qk_groups = 1;
  QkScope scope = QkScope::head;
  QkOrder order = QkOrder::before_rope;
  double qk_eps = 1e-12;
  double logit_scale = 1.0;
  RowScale row_scale = RowScale::one;
  double soft_cap = 0.0;  // 0: none
  int window = 0;         // of a causal mask: how many keys a query sees, up to its own; 0: all. Set by the model
};

}  // namespace normlab
