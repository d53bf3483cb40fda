#include "normlab/study/run/progress.h"

#include <algorithm>

#include "normlab/base/terminal.h"
#include "normlab/base/text.h"

namespace normlab {
namespace {

std::string padded(const std::string& text, size_t width) {
  return text + std::string(width - std::min(width, text.size()), ' ');
}

constexpr std::string_view loss_mark = "  val ";

// The lowest of the losses at the ends of the rows.
void mark_best(std::vector<std::string>& rows) {
  std::string* best = nullptr;
  double lowest = 0.0;
  for (std::string& row : rows) {
    const size_t at = row.rfind(loss_mark);
    const auto loss = at == std::string::npos ? std::nullopt : parse_number(row.substr(at + loss_mark.size()));
    if (loss && (!best || *loss < lowest)) best = &row, lowest = *loss;
  }
  if (!best) return;
  const size_t at = best->rfind(loss_mark) + loss_mark.size();
  *best = best->substr(0, at) + best_value(best->substr(at), true);
}

}  // namespace

std::string name_of(const Plan& plan, const Trial& trial) {
  return concat("trial ", trial.number, " (", plan.variants[trial.variant].label, ", fold ", trial.fold, ", seed ",
                trial.seed, ")");
}

StudyProgress::StudyProgress(const Plan& plan, std::vector<double> flops, Clock::time_point start)
    : plan_(plan), flops_(std::move(flops)), records_(plan.trials.size()), glances_(plan.trials.size()), start_(start) {
  for (const Trial& trial : plan.trials) update(trial);
  flops_before_ = flops_done();
}

void StudyProgress::update(const Trial& trial) {
  records_[trial.number - 1] = read_trial(trial);
  glances_[trial.number - 1] = glance(trial);
}

size_t StudyProgress::count(TrialStatus status) const {
  return static_cast<size_t>(std::count_if(records_.begin(), records_.end(),
                                           [&](const TrialRecord& record) { return record.status == status; }));
}

double StudyProgress::flops_done() const {
  double done = 0.0;
  for (const Trial& trial : plan_.trials) {
    const size_t i = trial.number - 1;
    const double steps = static_cast<double>(std::max<int64_t>(1, trial.config.train.max_steps));
    done += flops_[i] * (records_[i].ended() ? 1.0 : std::min(1.0, static_cast<double>(glances_[i].step) / steps));
  }
  return done;
}

double StudyProgress::flops_left() const {
  double all = 0.0;
  for (const double flops : flops_) all += flops;
  return all - flops_done();
}

std::string StudyProgress::line(Clock::time_point now) const {
  const size_t ended = count(TrialStatus::finished) + count(TrialStatus::diverged);
  const double seconds = std::chrono::duration<double>(now - start_).count();
  const double done = flops_done(), left = flops_left(), of_session = done - flops_before_;
  const size_t crashed = count(TrialStatus::crashed), diverged = count(TrialStatus::diverged);
  return concat(
      ended, " of ", plural(plan_.trials.size(), "trial"), diverged > 0 ? concat(", ", diverged, " diverged") : "",
      crashed > 0 ? concat(", ", crashed, " crashed") : "", "  ", fixed(100.0 * done / std::max(1.0, done + left), 0),
      " %  ", of_session > 0 ? concat(si(of_session / std::max(1e-3, seconds)), "FLOP/s  ") : "", "elapsed ",
      clock_time(seconds), of_session > 0 ? concat("  left ", clock_time(left / of_session * seconds)) : "");
}

std::string StudyProgress::variant_row(size_t variant, size_t label_width) const {
  size_t ended = 0, losses = 0, all = 0;
  double sum = 0.0;
  for (const Trial& trial : plan_.trials) {
    if (trial.variant != variant) continue;
    ++all;
    const TrialRecord& record = records_[trial.number - 1];
    if (record.ended()) ++ended;
    if (record.status == TrialStatus::finished && record.val_loss) ++losses, sum += *record.val_loss;
  }
  constexpr size_t width = 20;
  const size_t filled = ended * width / all;
  std::string bar;
  for (size_t i = 0; i < width; ++i) bar += i < filled ? "\u2588" : "\u2591";
  return concat(padded(plan_.variants[variant].label, label_width), "  ", bar, "  ", ended, "/", all,
                losses > 0 ? concat(loss_mark, significant(sum / static_cast<double>(losses), 4)) : "");
}

std::string StudyProgress::running_row(const Trial& trial) const {
  const Glance& seen = glances_[trial.number - 1];
  return concat("  ", name_of(plan_, trial), "  step ", seen.step, "/", trial.config.train.max_steps,
                seen.loss ? concat("  loss ", significant(*seen.loss, 4)) : "",
                seen.val_loss ? concat("  val ", significant(*seen.val_loss, 4)) : "");
}

std::string StudyProgress::table(const std::vector<const Trial*>& running, int rows, Clock::time_point now) const {
  std::string out;
  const size_t room = static_cast<size_t>(std::max(2, rows)) - 1;
  const size_t shown = std::min(running.size(), room);
  if (plan_.variants.size() + shown <= room) {
    size_t width = 0;
    for (const Variant& variant : plan_.variants) width = std::max(width, variant.label.size());
    std::vector<std::string> variants;
    for (size_t v = 0; v < plan_.variants.size(); ++v) variants.push_back(variant_row(v, width));
    if (use_colour(STDERR_FILENO)) mark_best(variants);
    for (const std::string& row : variants) out += row + "\n";
  }
  for (size_t i = 0; i < shown; ++i) out += running_row(*running[i]) + "\n";
  return out + line(now);
}

}  // namespace normlab
