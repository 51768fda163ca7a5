// The values of one step: its inputs that are no state, and the next token from its logits.

#pragma once

#include <algorithm>
#include <limits>

#include <executorch/runtime/core/exec_aten/exec_aten.h>

#include "description.h"

using executorch::aten::ScalarType;
using executorch::aten::Tensor;

using Bytes = std::vector<uint8_t>;

// The tokens of one call, and the position of the first of them.
struct Step {
  std::vector<int64_t> ids;
  int32_t past;
};

// Sets each element of a tensor whose first axis is of size 1 to `value(token, element within the token's row)`.
template <typename T, typename Value>
void fill(Bytes& bytes, const Step& step, Value value) {
  auto* elements = reinterpret_cast<T*>(bytes.data());
  const size_t width = bytes.size() / sizeof(T) / step.ids.size();
  for (size_t token = 0; token < step.ids.size(); ++token) {
    for (size_t i = 0; i < width; ++i) {
      *elements++ = static_cast<T>(value(static_cast<int32_t>(token), static_cast<int32_t>(i)));
    }
  }
}

// A mask that is added to the scores.
template <typename T>
void fill_scores(Bytes& bytes, const Step& step) {
  const float hidden = static_cast<float>(std::numeric_limits<T>::lowest());
  fill<T>(bytes, step, [&](int32_t token, int32_t position) { return position <= step.past + token ? 0.0f : hidden; });
}

// Each token sees the positions up to its own.
inline void fill_mask(Bytes& bytes, ScalarType type, const Step& step) {
  switch (type) {
    case ScalarType::Bool:
      fill<bool>(bytes, step, [&](int32_t token, int32_t position) { return position <= step.past + token; });
      break;
    case ScalarType::Float: fill_scores<float>(bytes, step); break;
    case ScalarType::Half: fill_scores<executorch::aten::Half>(bytes, step); break;
    case ScalarType::BFloat16: fill_scores<executorch::aten::BFloat16>(bytes, step); break;
    default: fail("this loop cannot make a mask of this dtype");
  }
}

inline void fill_input(const std::string& name, Bytes& bytes, ScalarType type, const Step& step) {
  const bool whole = type == ScalarType::Long;
  if (name == "attention_mask") {
    fill_mask(bytes, type, step);
  } else if (name == "input_ids" && whole) {
    fill<int64_t>(bytes, step, [&](int32_t token, int32_t) { return step.ids[token]; });
  } else if (name == "position_ids" && whole) {
    fill<int64_t>(bytes, step, [&](int32_t token, int32_t) { return step.past + token; });
  } else {
    fail("this loop has no values for the input " + name);
  }
}

template <typename T>
int64_t largest_of_row(const Tensor& logits) {
  const auto width = logits.size(2);
  const T* values = logits.const_data_ptr<T>() + (logits.size(1) - 1) * width;
  const auto less = [](T a, T b) { return static_cast<float>(a) < static_cast<float>(b); };
  return std::max_element(values, values + width, less) - values;
}

// The token with the largest logit behind the last position; logits [1, positions, vocabulary].
inline int64_t next_token(const Tensor& logits) {
  switch (logits.scalar_type()) {
    case ScalarType::Float: return largest_of_row<float>(logits);
    case ScalarType::Half: return largest_of_row<executorch::aten::Half>(logits);
    case ScalarType::BFloat16: return largest_of_row<executorch::aten::BFloat16>(logits);
    default: fail("this loop cannot read logits of this dtype");
  }
}
