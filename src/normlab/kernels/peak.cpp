// Chains of independent multiply-adds that never leave the registers.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "normlab/kernels/peak.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace normlab {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

// Multiply-adds take up to 5 cycles and start two in a cycle: 12 chains keep them busy and fit 16 registers.
constexpr int kChains = 12;

// Runs the chains and returns the operations done. The result goes through a volatile, so that none is removed.
double run_chains(int repeats) {
  const hn::ScalableTag<float> df;
  const auto factor = hn::Set(df, 0.999F);
  const auto addend = hn::Set(df, 1e-3F);
  decltype(hn::Zero(df)) chain[kChains];
  for (int j = 0; j < kChains; ++j) chain[j] = hn::Set(df, static_cast<float>(j));
  for (int i = 0; i < repeats; ++i) {
#pragma GCC unroll 12
    for (int j = 0; j < kChains; ++j) chain[j] = hn::MulAdd(chain[j], factor, addend);
  }
  auto sum = chain[0];
  for (int j = 1; j < kChains; ++j) sum = hn::Add(sum, chain[j]);
  volatile float result = hn::GetLane(hn::SumOfLanes(df, sum));
  static_cast<void>(result);
  return 2.0 * kChains * static_cast<double>(hn::Lanes(df)) * repeats;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace normlab
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

#include "normlab/kernels/peak.h"

namespace normlab {

HWY_EXPORT(run_chains);

namespace {

double rate_over(double seconds) {
  constexpr int kRepeats = 100000;  // well below a millisecond
  const auto start = std::chrono::steady_clock::now();
  double operations = 0.0;
  std::chrono::duration<double> elapsed{};
  do {
    operations += HWY_DYNAMIC_DISPATCH(run_chains)(kRepeats);
    elapsed = std::chrono::steady_clock::now() - start;
  } while (elapsed.count() < seconds);
  return operations / elapsed.count();
}

}  // namespace

double measured_peak(int threads, double seconds) {
  std::vector<double> rates(static_cast<size_t>(std::max(threads, 1)));
  std::vector<std::thread> others;
  for (size_t i = 1; i < rates.size(); ++i) others.emplace_back([&, i] { rates[i] = rate_over(seconds); });
  rates[0] = rate_over(seconds);
  for (auto& other : others) other.join();
  double sum = 0.0;
  for (const double rate : rates) sum += rate;
  return sum;
}

}  // namespace normlab
#endif
