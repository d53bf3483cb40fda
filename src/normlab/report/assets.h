// The style sheets and the script of the report, embedded by cmake/embed.cmake from the files beside this one.
#pragma once

#include <string_view>

namespace normlab {

extern const std::string_view chart_css;  // of the SVG charts, in the page and in saved files
extern const std::string_view page_css;
extern const std::string_view page_js;

}  // namespace normlab
