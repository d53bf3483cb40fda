// What the head width does to attention between random vectors: the claims of docs/theory.md, measured.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace normlab {

// A way to make logits of queries and keys.
struct LogitRule {
  std::string name;  // "q.k / sqrt(d)"
  bool scaled;       // times 1/sqrt(d)
  double p;          // rows have Lp norm 1; 0: no normalisation
  double gain;
};
std::vector<LogitRule> logit_rules();

// Of one head with 64 queries and 64 keys of independent standard normal entries, all visible, over many draws.
struct TheoryPoint {
  int64_t d_head = 0;
  double logit_std = 0.0;         // of S_ij
  double frobenius = 0.0;         // ||S||_F of the 64 x 64 logits, root mean square over draws
  double max_logit = 0.0;         // largest |S_ij|
  double bound = 0.0;             // of |S_ij|, by logit_bound(); infinite without normalisation
  double relative_entropy = 0.0;  // mean over rows
  double saturated = 0.0;         // share of rows
  double grad_q = 0.0;            // median over rows of ||dL/dq_i||_2, L = sum_ij A_ij c_ij with standard normal c
};
std::vector<TheoryPoint> theory_points(const LogitRule& rule, const std::vector<int64_t>& widths, uint64_t seed);

// The largest |gain <q_hat, k_hat>| of vectors of Lp norm 1 in R^d: gain for p <= 2, gain d^(1 - 2/p) beyond.
double logit_bound(double p, double gain, int64_t d);

}  // namespace normlab
