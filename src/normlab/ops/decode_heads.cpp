#include "normlab/ops/decode_heads.h"

#include "normlab/ops/attention_units.h"
#include "normlab/ops/float_data.h"

namespace normlab {

using torch::Tensor;

DecodeHeads::DecodeHeads(const AttentionForm& form, const RopeTable* rope, const Learned& learned, int64_t heads,
                         int64_t d)
    : rows_(row_transform({.form = form, .rope = rope}, /*first_position=*/0)),
      learned_(learned),
      heads_(heads),
      d_(d) {
  if (rope) cos_ = rope->cos, sin_ = rope->sin, alike_ = false;  // each row would stand at a position of its own
  if (learned.p.defined() && learned.p.numel() > 1) alike_ = false;
  for (const Tensor& affine : {learned.affine.weight, learned.affine.bias})
    if (affine.defined() && affine.numel() != d) alike_ = false;
}

void DecodeHeads::transform(int64_t head, int64_t count, const RowTransform& rows, const float* x, float* out) const {
  RowTransform own = rows;
  if (learned_.p.defined()) own.p = data(learned_.p)[learned_.p.numel() == 1 ? 0 : head];
  const RowAffine affine{affine_of(learned_.affine.weight, head, d_), affine_of(learned_.affine.bias, head, d_)};
  transform_rows(own, affine, {x + head * d_, d_}, count, d_, {out + head * d_, d_});
}

void DecodeHeads::operator()(const float* x, int64_t position, float* out) const {
  RowTransform rows = rows_;
  if (rows.cos) rows.cos += position * (d_ / 2), rows.sin += position * (d_ / 2);
  for (int64_t head = 0; head < heads_; head += alike_ ? heads_ : 1) transform(head, alike_ ? heads_ : 1, rows, x, out);
  if (!learned_.gain.defined()) return;
  const float* gain = data(learned_.gain);
  const int64_t entries = learned_.gain.numel();
  const bool by_channel = entries == heads_ * d_;
  for (int64_t head = 0; head < heads_; ++head)
    for (int64_t c = 0; c < d_; ++c) out[head * d_ + c] *= gain[by_channel ? head * d_ + c : entries == 1 ? 0 : head];
}

}  // namespace normlab
