// The style sheets and scripts of pages, embedded by cmake/embed.cmake from the files beside this one.
#pragma once

#include <string_view>

namespace normlab {

extern const std::string_view chart_css;  // of the SVG charts, in the page and in saved files
extern const std::string_view page_css;
extern const std::string_view page_js;
extern const std::string_view live_css, live_js;  // of pages that `normlab serve` sends

}  // namespace normlab
