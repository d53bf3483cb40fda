#include "normlab/serve/markup.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "normlab/base/text.h"
#include "normlab/record/manifest.h"
#include "normlab/report/svg.h"

namespace normlab {
namespace {

Html cell(const std::string& label, const std::string& content, const std::string& css_class = "") {
  std::string out = "<td";
  if (!label.empty()) out += concat(" data-label=\"", escape(label), "\"");
  if (!css_class.empty()) out += concat(" class=\"", css_class, "\"");
  return {concat(out, ">", content, "</td>")};
}

std::string small(const std::string& text) { return text.empty() ? "" : concat("<small>", escape(text), "</small>"); }

}  // namespace

std::string run_address(const std::string& path) { return "/run/" + percent_encode(path); }
std::string study_address(const std::string& path) { return "/study/" + percent_encode(path); }
std::string inspect_address(const std::string& path) { return "/inspect/" + percent_encode(path); }

Html bar(double share) {
  const std::string width = fixed(100 * std::clamp(share, 0.0, 1.0), 1);
  return {concat("<span class=\"bar\" role=\"img\" aria-label=\"", percent(share),
                 " done\"><span style=\"width:", width, "%\"></span></span>")};
}

Html state_mark(RunState state) {
  const bool bad = state == RunState::diverged || state == RunState::crashed || state == RunState::damaged;
  const char* css_class = bad ? " bad" : state == RunState::running ? " running" : "";
  return {concat("<span class=\"state", css_class, "\">", name_of(state), "</span>")};
}

Html time_mark(int64_t seconds) {
  if (seconds == 0) return {};
  const std::string text = utc_time(std::chrono::system_clock::time_point(std::chrono::seconds(seconds)));
  return {concat("<time datetime=\"", text, "\">", text, "</time>")};
}

Html anchor(const std::string& text, const std::string& address) {
  return {concat("<a href=\"", escape(address), "\">", escape(text), "</a>")};
}

Html post_form(const std::string& address, const std::string& text) {
  return {concat("<form method=\"post\" action=\"", escape(address), "\"><button>", escape(text), "</button></form>")};
}

std::string loss_text(const std::optional<double>& loss) { return loss ? fixed(*loss, 4) : "\xE2\x80\x93"; }

std::string percent(double share) { return concat(static_cast<int>(std::floor(100 * share + 1e-9)), " %"); }

Html plain(const std::string& text) { return {escape(text)}; }

Html progress_block(RunState state, double share, const std::vector<Html>& said) {
  std::string line = concat("<strong>", percent(share), "</strong>");
  for (const Html& each : said)
    if (!each.text.empty()) line += concat(" \xC2\xB7 ", each.text);
  return {concat("<div class=\"progress", state == RunState::running ? " running" : "", "\">", bar(share).text,
                 "<div class=\"line\">", line, "</div></div>\n")};
}

Html entry_table(const std::vector<Entry>& entries, const std::string& what) {
  std::string out =
      concat("<table class=\"entries\"><thead><tr><th scope=\"col\">", escape(what),
             "</th><th scope=\"col\">state</th><th scope=\"col\">progress</th>"
             "<th scope=\"col\" class=\"number\">best loss</th><th scope=\"col\" class=\"number\">time left</th>"
             "<th scope=\"col\" class=\"number\">last change</th></tr></thead>\n<tbody>\n");
  for (const Entry& entry : entries) {
    out += concat("<tr", entry.state == RunState::running ? " class=\"running\"" : "", "><th scope=\"row\">",
                  anchor(entry.name, entry.address).text, small(entry.note), "</th>",
                  cell("", state_mark(entry.state).text).text,
                  cell("", concat(escape(entry.progress), bar(entry.share).text)).text,
                  cell("best", concat(escape(entry.loss), small(entry.loss_note)), "number").text,
                  cell(entry.left.empty() ? "" : "left", escape(entry.left), "number").text,
                  cell("", time_mark(entry.changed).text, "number").text, "</tr>\n");
  }
  return {out + "</tbody></table>\n"};
}

}  // namespace normlab
