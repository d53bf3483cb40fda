// Tests of the page: safe, self-contained, small, the same in every locale.
#include "normlab/report/page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <locale>

#include "normlab/base/text.h"
#include "normlab/report/assets.h"
#include "normlab/report/colour.h"
#include "normlab/report/line_chart.h"
#include "normlab/report/panels.h"
#include "xml_check.h"

namespace normlab {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Series curve(const std::string& label, const Style& style, int points) {
  Series series{label, style, {{}, {}, {}, {}}, {}, {}, {}};
  for (int i = 0; i < points; ++i) {
    for (std::size_t axis = 0; axis < 4; ++axis) series.x[axis].push_back(i * (1.0 + 0.37 * static_cast<double>(axis)));
    series.y.push_back(1.5 + 2.7 * std::exp(-i * 0.01) + 0.05 * std::sin(i * 1.7));
    series.low.push_back(series.y.back() - 0.02);
    series.high.push_back(series.y.back() + 0.02);
  }
  return series;
}

// 7 schemes x 10 folds with long curves, four x axes and a log switch: more than any real study asks for.
Page large_page() {
  const auto styles = ordered_styles(7, 2);
  const std::vector<XAxis> x = {{"step", "step"}, {"end", "step", 700}, {"tokens", "tokens"}, {"time", "time (min)"}};
  LineChart loss{{"loss", "Loss", "Bands", "Curves"}, x, {"loss (nats)", true}, {}};
  Panels folds{{"folds", "Folds", "", "Curves"}, x, {"loss (nats)", true}, {}};
  for (int fold = 0; fold < 10; ++fold) folds.panels.push_back({concat("fold ", fold + 1), {}});
  for (std::size_t i = 0; i < 7; ++i) {
    loss.series.push_back(curve(concat("p = ", i), styles[i], 2000));
    for (Panel& panel : folds.panels) {
      panel.series.push_back(curve(concat("p = ", i), styles[i], 2000));
      panel.series.back().low.clear(), panel.series.back().high.clear();
    }
  }
  return {.title = "Study",
          .subtitle = "70 trials",
          .verdict = "p = 3 wins.",
          .detail = "It is faster, too.",
          .figures = {{"1", "one"}},
          .notices = {},
          .sections = {{"Loss", "", {render(loss)}}, {"Folds", "", {render(folds)}}},
          .command = "normlab compare",
          .footer = {}};
}

const std::string& large_text() {
  static const std::string text = render(large_page());
  return text;
}

TEST(Page, UserTextIsEscapedEverywhere) {
  const std::string evil = "<script>alert('1')</script>\"&";
  const std::string text = render(Page{evil,
                                       evil,
                                       evil,
                                       evil,
                                       evil,
                                       {{evil, evil}},
                                       {evil},
                                       {{evil, evil, {paragraph(evil)}}, {evil, evil, {code_block(evil)}}},
                                       evil,
                                       {evil}});
  EXPECT_THAT(text, Not(HasSubstr("<script>alert")));
  EXPECT_EQ(testing::count(text, "<script>"), 1u);  // ours
}

TEST(Page, VerdictComesBeforeCharts) {
  const std::string& text = large_text();
  EXPECT_LT(text.find("p = 3 wins."), text.find("<figure"));
  EXPECT_LT(text.find("p = 3 wins."), text.find("It is faster, too."));
  EXPECT_LT(text.find("It is faster, too."), text.find("<figure"));
  EXPECT_LT(text.find("<figure"), text.find("normlab compare"));
  EXPECT_THAT(text, HasSubstr("<h2 id=\"s2-folds\">"));
  EXPECT_THAT(text, HasSubstr("<a href=\"#s2-folds\">"));
}

TEST(Page, NothingIsFetchedAndOnlyOurScriptRuns) {
  const std::string& text = large_text();
  EXPECT_THAT(text, HasSubstr("default-src 'none'; base-uri 'none'; form-action 'none'"));
  EXPECT_THAT(text, ::testing::ContainsRegex("script-src 'sha256-[A-Za-z0-9+/]{43}='"));
  for (const char* way : {"src=\"", "url(", "@import", "<link", "<iframe", "fetch(", "XMLHttpRequest", "onclick="}) {
    EXPECT_THAT(text, Not(HasSubstr(way)));
  }
  for (std::size_t at = text.find("http"); at != std::string::npos; at = text.find("http", at + 1)) {
    const bool harmless = text.substr(at, 26) == "http://www.w3.org/2000/svg" || text.substr(at, 10) == "http-equiv";
    EXPECT_TRUE(harmless) << text.substr(at, 60);
  }
}

TEST(Page, StaysUnderTwoMegabytes) { EXPECT_LT(large_text().size(), 2000000u); }

TEST(Page, AnEmptyPageIsAPage) {
  const std::string text = render(Page{});
  EXPECT_THAT(text, HasSubstr("<!DOCTYPE html>"));
  EXPECT_THAT(text, Not(HasSubstr("<nav")));
}

struct CommaPoint : std::numpunct<char> {
  char do_decimal_point() const override { return ','; }
  char do_thousands_sep() const override { return '.'; }
  std::string do_grouping() const override { return "\3"; }
};

TEST(Page, TheSameInEveryLocale) {
  const std::string before = large_text();
  const std::locale old = std::locale::global(std::locale(std::locale::classic(), new CommaPoint));
  const std::string after = render(large_page());
  std::locale::global(old);
  EXPECT_EQ(before, after);
}

// Text colours of the style sheets, as `--name: #rrggbb`, against their paper.
TEST(PageCss, TextContrast) {
  const std::string css(page_css);
  const std::size_t dark = css.find("prefers-color-scheme: dark");
  for (const std::size_t from : {std::size_t{0}, dark}) {
    const auto colour = [&](const std::string& name) {
      const std::size_t at = css.find("--" + name + ": #", from) + name.size() + 4;
      const std::string found = css.substr(at, css.find(';', at) - at);
      return found.size() == 4 ? concat('#', found[1], found[1], found[2], found[2], found[3], found[3]) : found;
    };
    for (const char* name : {"ink", "soft", "link", "mark"}) {
      EXPECT_GE(contrast(colour(name), colour("paper")), 4.5) << name;
      EXPECT_GE(contrast(colour(name), colour("shade")), 4.5) << name;
    }
  }
}

TEST(ChartCss, IsSafeInsideXml) {
  EXPECT_EQ(chart_css.find('<'), std::string_view::npos);
  EXPECT_EQ(chart_css.find('&'), std::string_view::npos);
}

}  // namespace
}  // namespace normlab
