// How long a step takes on many ranks, from a few numbers: a projection, held to measurements in docs/clusters.md.
#pragma once

namespace normlab {

// One rank's share of a step, and the network between two ranks.
struct RankCosts {
  double compute = 0.0;         // seconds of forward, backward and update
  double beside = 0.0;          // the part of them during which sums may be under way: the backward pass
  double gradient_bytes = 0.0;  // summed in every step
  double late_bytes = 0.0;      // the part of them that is complete only after the backward pass
  double bandwidth = 0.0;       // bytes/s that a rank sends while it receives as many
  double latency = 0.0;         // seconds of a message without content
};

// Rabenseifner's algorithm: 2 log2(n) messages, in which a rank sends and receives 2 (n - 1)/n times the gradients.
double seconds_of_sums(const RankCosts& costs, int ranks);

// compute + what of the early sums does not fit beside it + the late sums.
double seconds_of_step(const RankCosts& costs, int ranks);

// The share of a rank's time that goes into computation.
double efficiency(const RankCosts& costs, int ranks);

}  // namespace normlab
