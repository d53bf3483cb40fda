#include "normlab/data/sentencepiece.h"

#include <sentencepiece_processor.h>

#include "normlab/base/error.h"
#include "normlab/base/text.h"

namespace normlab {
namespace {

void require(const sentencepiece::util::Status& status, const std::string& where, const char* what) {
  if (!status.ok()) throw DataError(where, concat(what, " (", status.ToString(), ")."));
}

}  // namespace

SentencePieces::SentencePieces(std::string model, const std::string& where) : model_(std::move(model)) {
  auto processor = std::make_shared<sentencepiece::SentencePieceProcessor>();
  require(processor->LoadFromSerializedProto(model_), where, "is not a model of SentencePiece");
  processor_ = std::move(processor);
}

std::vector<std::string> SentencePieces::segment(std::string_view line) const {
  std::vector<std::string> pieces;
  require(processor_->Encode({line.data(), line.size()}, &pieces), "SentencePiece", "a line cannot be segmented");
  return pieces;
}

std::string SentencePieces::join(const std::vector<std::string>& pieces) const {
  std::string text;
  require(processor_->Decode(pieces, &text), "SentencePiece", "pieces cannot be joined");
  return text;
}

}  // namespace normlab
