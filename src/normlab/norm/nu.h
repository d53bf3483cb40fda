// The constant factors nu of the approximately normalised transformer (Franke et al. 2025, arXiv 2505.22014): each
// brings the expected norm of a map's output back to 1, for unit inputs and weights with unit rows.
//
//   W in R^{out x in} with unit rows, x unit:   E |W x|^2 = out / in,              nu = sqrt(in / out)
//   f entry by entry on n entries N(0, std^2):  E |f(x)|^2 = n E f(std g)^2,       nu = 1 / sqrt(n E f(std g)^2)
//   u o f(x), u unit, x as above:               E |u o f(x)|^2 = E f(std g)^2      the same with n = 1
//   (1 - a) h + a b, h and b unit, orthogonal:  E |.|^2 = a^2 + (1 - a)^2,         nu = 1 / sqrt(a^2 + (1 - a)^2)
#pragma once

#include <functional>

namespace normlab {

double nu_of_map(double in, double out);
// By quadrature, for the activation in use.
double nu_of_activation(const std::function<double(double)>& f, double std, double n = 1.0);

}  // namespace normlab
