// Chains of independent multiply-adds that never leave the registers, and sums over a buffer.
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

// Reads `floats`, a multiple of what one turn of the loop reads.
void read_all(const float* from, size_t floats) {
  const hn::ScalableTag<float> df;
  const size_t lanes = hn::Lanes(df);
  decltype(hn::Zero(df)) sum[8];
  for (auto& each : sum) each = hn::Zero(df);
  for (size_t i = 0; i < floats; i += 8 * lanes) {
#pragma GCC unroll 8
    for (size_t j = 0; j < 8; ++j) sum[j] = hn::Add(sum[j], hn::Load(df, from + i + j * lanes));
  }
  for (size_t j = 1; j < 8; ++j) sum[0] = hn::Add(sum[0], sum[j]);
  volatile float result = hn::GetLane(hn::SumOfLanes(df, sum[0]));
  static_cast<void>(result);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace normlab
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <algorithm>
#include <chrono>
#include <cstring>
#include <numeric>
#include <thread>
#include <vector>

#include "normlab/kernels/large_pages.h"
#include "normlab/kernels/peak.h"

namespace normlab {

HWY_EXPORT(run_chains);
HWY_EXPORT(read_all);

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

// The fastest of the readings that `seconds` have room for, in bytes/s.
double read_rate(size_t bytes, double seconds) {
  const LargePages buffer = in_large_pages(bytes);
  std::memset(buffer.get(), 0, bytes);
  const auto start = std::chrono::steady_clock::now();
  double fastest = 0.0;
  std::chrono::duration<double> elapsed{};
  do {
    const auto before = elapsed;
    HWY_DYNAMIC_DISPATCH(read_all)(buffer.get(), bytes / sizeof(float));
    elapsed = std::chrono::steady_clock::now() - start;
    fastest = std::max(fastest, static_cast<double>(bytes) / (elapsed - before).count());
  } while (elapsed.count() < seconds);
  return fastest;
}

// The sum over threads of what rate() gives in each.
template <class Rate>
double summed_over_threads(int threads, const Rate& rate) {
  std::vector<double> rates(static_cast<size_t>(std::max(threads, 1)));
  std::vector<std::thread> others;
  for (size_t i = 1; i < rates.size(); ++i) others.emplace_back([&, i] { rates[i] = rate(); });
  rates[0] = rate();
  for (auto& other : others) other.join();
  return std::accumulate(rates.begin(), rates.end(), 0.0);
}

}  // namespace

double measured_peak(int threads, double seconds) {
  return summed_over_threads(threads, [&] { return rate_over(seconds); });
}

double measured_read_bandwidth(int threads, size_t bytes, double seconds) {
  constexpr size_t turn = 8 * 64;  // bytes of the widest vectors
  return summed_over_threads(threads, [&] { return read_rate((bytes + turn - 1) / turn * turn, seconds); });
}

}  // namespace normlab
#endif
