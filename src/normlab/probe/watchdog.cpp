#include "normlab/probe/watchdog.h"

#include <algorithm>
#include <cmath>

#include "normlab/base/text.h"

namespace normlab {
namespace {

constexpr size_t n_remembered = 50;                                          // steps
constexpr double spike = 1.25, explosion = 10.0;                             // times the largest of these steps
constexpr double collapsed_entropy = 0.05, uniform = 0.99, saturated = 0.5;  // of the relative entropy; share of rows
constexpr double large_logit = 100.0, vanished = 1e-7;

enum Rule : size_t { collapse, saturation, uniformity, growth, vanishing, exploding, loss_spike };

constexpr WatchdogRow watchdog_rows[] = {
    {"entropy collapse", "relative_entropy of a head below 0.05",
     "nearly all of the head's queries look at one key, and the gradient through its softmax is close to 0",
     "norm.scheme=qknorm or lp bounds the logits; a smaller norm.gain_init or optim.lr slows their growth",
     "a smaller norm.gain_init, or a norm.gain_max: the gain is what lets the logits grow; a smaller optim.lr slows "
     "it"},
    {"saturation", "more than half of a head's rows have a weight above 0.99",
     "the softmax of these rows has almost no gradient, so queries and keys stop learning",
     "norm.scheme=qknorm or lp, a smaller norm.gain_init, or a smaller optim.lr",
     "a smaller norm.gain_init, a norm.gain_max, or a smaller optim.lr"},
    {"uniform attention", "relative_entropy of a head above 0.99 after the first fifth of the run",
     "the head averages over all keys: its queries and keys do not select any",
     "a larger norm.gain_init, norm.gain=head, or fewer heads"},
    {"logit growth", "a logit of a head above 100 or below -100",
     "logits of this size come before collapse and divergence, and are too coarse for 16 bit numbers",
     "norm.scheme=qknorm or lp, a smaller optim.lr, or a larger optim.weight_decay",
     "a smaller norm.gain_init, a norm.gain_max, or a smaller optim.lr"},
    {"vanishing gradient", "norm of dL/dW_q or dL/dW_k of a layer below 1e-7",
     "the layer's attention pattern no longer learns",
     "look at its entropy: a collapsed softmax needs bounded logits (norm.scheme=qknorm), a uniform one a larger gain",
     "look at its entropy: a collapsed softmax needs a smaller gain (norm.gain_init), a uniform one a larger one"},
    {"exploding gradient", "gradient norm above 10 times the largest of the last 50 steps",
     "one step would undo many; clipping hides it from the weights but not from Adam's moments",
     "a smaller optim.lr or a longer optim.warmup_steps; optim.clip=1 if clipping is off"},
    {"loss spike", "training loss above 1.25 times the largest of the last 50 steps",
     "the update before this step was too large", "a smaller optim.lr, optim.beta2 nearer to 0.95, or optim.clip=1"},
};

std::string warning_text(Rule rule, bool bounded, int64_t step, const std::string& what) {
  const WatchdogRow& row = watchdog_rows[rule];
  const char* answer = bounded && row.bounded_answer ? row.bounded_answer : row.answer;
  return concat(row.name, " at step ", step, ": ", what, ". It means: ", row.meaning, ". Try: ", answer, ".");
}

// Whether `value` is out of all proportion to the last steps, of which it then becomes one.
bool leaps(std::deque<double>& last, double value, double factor) {
  const bool enough = last.size() >= n_remembered;
  const bool leap = enough && value > factor * *std::max_element(last.begin(), last.end());
  last.push_back(value);
  if (last.size() > n_remembered) last.pop_front();
  return leap;
}

struct RowCheck {
  Quantity quantity;
  bool of_heads;  // or of layers
  Rule rule;
  bool (*bad)(double value);
};
constexpr RowCheck checks[] = {
    {Quantity::relative_entropy, true, collapse, [](double x) { return x < collapsed_entropy; }},
    {Quantity::relative_entropy, true, uniformity, [](double x) { return x > uniform; }},
    {Quantity::saturated, true, saturation, [](double x) { return x > saturated; }},
    {Quantity::max_logit, true, growth, [](double x) { return x > large_logit; }},
    {Quantity::min_logit, true, growth, [](double x) { return x < -large_logit; }},
    {Quantity::grad_w_q, false, vanishing, [](double x) { return x < vanished; }},
    {Quantity::grad_w_k, false, vanishing, [](double x) { return x < vanished; }},
};

std::string place_of(const Reading& reading) {
  return concat(describe({reading.stack, reading.layer}), reading.head < 0 ? "" : concat(", head ", reading.head));
}

}  // namespace

std::span<const WatchdogRow> watchdogs() { return watchdog_rows; }

bool bounds_logits(const NormScheme& scheme) { return scheme.qk != QkNorm::none || scheme.soft_cap > 0.0; }

std::vector<std::string> Watchdog::after_step(int64_t step, double loss, double grad_norm) {
  std::vector<std::string> lines;
  if (leaps(memory_.losses, loss, spike))
    lines.push_back(warning_text(loss_spike, bounded_, step, concat("the loss is ", significant(loss, 4))));
  if (leaps(memory_.grad_norms, grad_norm, explosion))
    lines.push_back(
        warning_text(exploding, bounded_, step, concat("the gradient norm is ", significant(grad_norm, 3))));
  return lines;
}

std::vector<std::string> Watchdog::after_probe(int64_t step, const std::vector<Reading>& readings) {
  std::vector<std::string> lines;
  for (const RowCheck& check : checks) {
    if (check.rule == uniformity && step < settled_) continue;
    std::vector<const Reading*> fresh;
    for (const Reading& reading : readings) {
      const bool wanted = reading.quantity == check.quantity && (reading.head >= 0) == check.of_heads;
      if (!wanted || !check.bad(reading.value)) continue;
      if (memory_.known.insert({check.rule, reading.stack, reading.layer, reading.head}).second)
        fresh.push_back(&reading);
    }
    if (fresh.empty()) continue;
    const Reading& first = *fresh.front();
    lines.push_back(
        warning_text(check.rule, bounded_, step,
                     concat(place_of(first), " has ", row_of(first.quantity).key, " = ", significant(first.value, 3),
                            fresh.size() > 1 ? concat(", and ", fresh.size() - 1, " more like it") : "")));
  }
  return lines;
}

}  // namespace normlab
