// Translate lines with a trained checkpoint: 4_translate RUN < source.txt
#include <iostream>

#include "normlab/base/error.h"
#include "normlab/models/translate.h"
#include "normlab/train/checkpoint.h"

using namespace normlab;

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: 4_translate RUN < source.txt\n";
    return 2;
  }
  try {
    LoadedTranslator loaded = load_translator(argv[1]);
    std::vector<std::string> lines;
    for (std::string line; std::getline(std::cin, line);) lines.push_back(line);
    const torch::NoGradGuard no_grad;
    for (const TranslatedLine& line : translate_lines(loaded.model, loaded.vocabulary, lines, {}, /*batch_size=*/16))
      std::cout << (line.alternatives.empty() ? "" : line.alternatives.front().text) << "\n";
  } catch (const Error& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
