// SentencePiece models (Kudo and Richardson 2018), through their own library.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace sentencepiece {
class SentencePieceProcessor;
}

namespace normlab {

class SentencePieces {
 public:
  // The bytes of a .model file; `where` is named when they are none.
  SentencePieces(std::string model, const std::string& where);

  std::vector<std::string> segment(std::string_view line) const;
  std::string join(const std::vector<std::string>& pieces) const;  // the text, as the model's normalisation leaves it

  const std::string& model() const { return model_; }
  bool operator==(const SentencePieces& other) const { return model_ == other.model_; }

 private:
  std::string model_;
  std::shared_ptr<const sentencepiece::SentencePieceProcessor> processor_;
};

}  // namespace normlab
