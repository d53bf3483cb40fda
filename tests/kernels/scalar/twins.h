// Scalar twins of the kernels: plain loops, most of them in double, which every instruction set is compared with.
#pragma once

#include "normlab/kernels/activation.h"
#include "normlab/kernels/adamw.h"
#include "normlab/kernels/attention.h"
#include "normlab/kernels/column_sums.h"
#include "normlab/kernels/cross_entropy.h"
#include "normlab/kernels/decode_attention.h"
#include "normlab/kernels/embedding.h"
#include "normlab/kernels/layer_norm.h"
#include "normlab/kernels/lerp_norm.h"
#include "normlab/kernels/matmul.h"
#include "normlab/kernels/unit_vectors.h"
#include "normlab/kernels/weighted_sum.h"

namespace normlab::scalar {

void activation_forward(const ActivationSpec& spec, const float* x, float* y, RowRange rows) noexcept;
void activation_backward(const ActivationSpec& spec, const ActivationBackward& args, RowRange rows) noexcept;

void adamw(const AdamWSpec& spec, const AdamWBuffers& buffers, RowRange range) noexcept;
double squared_norm(const float* x, RowRange range) noexcept;
void add_to(float* x, const float* y, RowRange range) noexcept;

size_t attention_scratch_bytes(const AttentionSpec& spec, bool backward);
void attention_forward(const AttentionSpec& spec, const AttentionUnit& unit, void* scratch);
void attention_backward(const AttentionSpec& spec, const AttentionUnit& unit, const AttentionGrads& grads,
                        void* scratch);

void column_sums(const float* x, size_t row_stride, RowRange rows, size_t cols, float* out) noexcept;

void cross_entropy(const CrossEntropySpec& spec, float* logits, const int64_t* targets, float* loss,
                   RowRange rows) noexcept;

void decode_attention(const DecodeAttention& args, float* weights) noexcept;

void embedding_backward(const EmbeddingBackward& args, RowRange vocab) noexcept;

void norm_forward(const NormSpec& spec, const NormForward& args, RowRange rows) noexcept;
void norm_backward(const NormSpec& spec, const NormBackward& args, RowRange rows) noexcept;

void lerp_norm_forward(const LerpForward& args, size_t cols, RowRange rows) noexcept;
void lerp_norm_backward(const LerpBackward& args, size_t cols, RowRange rows) noexcept;

void matmul(const MatrixView& a, const MatrixView& b, bool add, float* c) noexcept;

void unit_rows(const UnitVectors& matrix, RowRange rows) noexcept;
void unit_columns(const UnitVectors& matrix, RowRange columns) noexcept;

void weighted_sum_forward(const WeightedSum& args, float* y, size_t cols, RowRange rows) noexcept;
void weighted_sum_backward(const WeightedSum& args, const WeightedSumGrads& grads, size_t cols, RowRange rows) noexcept;

}  // namespace normlab::scalar
