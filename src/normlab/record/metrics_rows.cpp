// Rows of metrics.jsonl: our own writer's lines are read without a JSON library, all others with it.
#include "normlab/record/metrics_rows.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "normlab/base/error.h"
#include "normlab/base/file.h"
#include "normlab/base/json.h"
#include "normlab/base/text.h"

namespace normlab {
namespace {

using Json = nlohmann::ordered_json;

bool is_json_digit(char c) { return c >= '0' && c <= '9'; }

// What JSON has no number for is written as text.
std::optional<double> named_number(std::string_view text) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (text == "nan") return std::nan("");
  if (text == "inf") return infinity;
  return text == "-inf" ? std::optional(-infinity) : std::nullopt;
}

// A flat object of plain keys and numbers, as MetricsLog writes it. False for any other text.
class PlainRow {
 public:
  PlainRow(std::string_view line, MetricsRow& row) : at_(line.data()), end_(at_ + line.size()), row_(row) {}

  bool parse() {
    row_.values.clear();
    bool has_step = false;
    if (!take('{')) return false;
    do {
      std::string_view key;
      double number = std::nan("");
      Kind kind = Kind::other;
      if (!take_text(key) || !take(':') || !take_value(number, kind)) return false;
      if (key == "step") {
        // One beyond what a double holds exactly is left to the other reader.
        if (kind != Kind::whole || has_step || number > 1e15) return false;
        row_.step = static_cast<int64_t>(number);
        has_step = true;
      } else {
        row_.values.push_back({key, number, kind != Kind::other});
      }
    } while (take(','));
    return take('}') && at_ == end_ && has_step;
  }

 private:
  enum class Kind { whole, number, other };  // digits only; any number; no number

  bool take(char c) {
    while (at_ != end_ && *at_ == ' ') ++at_;
    if (at_ == end_ || *at_ != c) return false;
    ++at_;
    return true;
  }

  bool take_text(std::string_view& text) {
    if (!take('"')) return false;
    const char* start = at_;
    while (at_ != end_ && *at_ != '"' && *at_ != '\\' && *at_ >= ' ' && *at_ <= '~') ++at_;
    text = {start, static_cast<size_t>(at_ - start)};
    return take('"');
  }

  bool take_word(std::string_view word) {
    if (!std::string_view(at_, static_cast<size_t>(end_ - at_)).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }

  bool take_value(double& number, Kind& kind) {
    while (at_ != end_ && *at_ == ' ') ++at_;
    if (at_ == end_) return false;
    if (*at_ == '"') {
      std::string_view text;
      if (!take_text(text)) return false;
      if (const auto named = named_number(text)) number = *named, kind = Kind::number;
      return true;
    }
    return take_word("true") || take_word("false") || take_word("null") || take_number(number, kind);
  }

  // JSON's grammar of numbers, which is narrower than that of from_chars.
  bool take_number(double& number, Kind& kind) {
    const char* p = at_;
    const auto digits = [&] {
      const char* first = p;
      while (p != end_ && is_json_digit(*p)) ++p;
      return p - first;
    };
    if (p != end_ && *p == '-') ++p;
    const bool zero = p != end_ && *p == '0';
    const auto whole = digits();
    if (whole == 0 || (zero && whole > 1)) return false;
    kind = *at_ != '-' && (p == end_ || (*p != '.' && *p != 'e' && *p != 'E')) ? Kind::whole : Kind::number;
    if (p != end_ && *p == '.' && (++p, digits() == 0)) return false;
    if (p != end_ && (*p == 'e' || *p == 'E')) {
      ++p;
      if (p != end_ && (*p == '+' || *p == '-')) ++p;
      if (digits() == 0) return false;
    }
    const auto [stop, problem] = std::from_chars(at_, p, number);
    if (problem != std::errc() || stop != p) return false;
    at_ = p;
    return true;
  }

  const char* at_;
  const char* end_;
  MetricsRow& row_;
};

// Any other JSON object with a step. The keys of the row point into `parsed`.
bool parse_other(std::string_view line, Json& parsed, MetricsRow& row) {
  parsed = parse_json<Json>(line);
  constexpr uint64_t largest = std::numeric_limits<int64_t>::max();
  if (!parsed.is_object() || !parsed.contains("step") || !parsed["step"].is_number_unsigned() ||
      parsed["step"].get<uint64_t>() > largest)
    return false;
  row.values.clear();
  row.step = parsed["step"].get<int64_t>();
  for (const auto& [key, value] : parsed.items()) {
    if (key == "step") continue;
    std::optional<double> number;
    if (value.is_number()) number = value.get<double>();
    if (value.is_string()) number = named_number(value.get_ref<const std::string&>());
    row.values.push_back({key, number.value_or(std::nan("")), number.has_value()});
  }
  return true;
}

}  // namespace

const MetricsRow::Value* MetricsRow::find(std::string_view key) const {
  const auto found = std::find_if(values.rbegin(), values.rend(), [&](const Value& each) { return each.key == key; });
  return found == values.rend() ? nullptr : &*found;
}

double MetricsRow::number(std::string_view key, double otherwise) const {
  const Value* found = find(key);
  return found && found->is_number ? found->number : otherwise;
}

void for_each_row(const std::filesystem::path& metrics, const std::function<void(const MetricsRow&)>& visit) {
  File file = File::open_to_read(metrics);
  constexpr size_t chunk = size_t{1} << 18;
  std::string text;
  size_t lines = 0;
  MetricsRow row;
  Json json;
  for (bool more = true; more;) {
    const size_t kept = text.size();
    text.resize(kept + chunk);
    const size_t count = file.read(text.data() + kept, chunk);
    text.resize(kept + count);
    more = count > 0;
    size_t start = 0;
    for (size_t end; (end = text.find('\n', start)) != std::string::npos; start = end + 1) {
      const std::string_view line(text.data() + start, end - start);
      if (!PlainRow(line, row).parse() && !parse_other(line, json, row))
        throw DataError(
            metrics.string(),
            concat("line ", lines + 1, " is not a JSON object with a step of 0 or more. The file is damaged."));
      ++lines;
      visit(row);
    }
    text.erase(0, start);
  }
  // A last line without a newline is what a killed writer leaves; it counts only when it is whole.
  if (!text.empty() && (PlainRow(text, row).parse() || parse_other(text, json, row))) visit(row);
}

}  // namespace normlab
