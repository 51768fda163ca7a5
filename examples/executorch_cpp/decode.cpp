// Generate greedily with a decode graph over a static cache that stays where it is.
//
//   decode <artifact directory> <description> [--max-new-tokens=<n>] --ids=1,5,9 [--ids=...]
//
// The artifact was exported with `multi_token_decode`, a static cache and the three `alloc_*` flags off; describe.py
// writes the description from its manifest. Each prompt starts from an empty cache, goes in with one call, and gives
// one line of JSON: the ids, and the bytes that the last step handed over between this program and the engine.

#include <algorithm>

#include <executorch/extension/tensor/tensor.h>
#include <executorch/runtime/core/exec_aten/util/tensor_util.h>

#include "method.h"
#include "step.h"

namespace {

using Sizes = std::vector<executorch::aten::SizesType>;

size_t bytes_of(const Sizes& sizes, ScalarType type) {
  size_t count = executorch::runtime::elementSize(type);
  for (const auto size : sizes) {
    count *= static_cast<size_t>(size);
  }
  return count;
}

class Decoder {
 public:
  Decoder(const std::string& directory, const std::string& description)
      : description_(description), method_(directory, description_.files, "decode") {
    const auto meta = method_->method_meta();
    if (meta.num_inputs() != description_.inputs.size() || meta.num_outputs() != description_.results.size()) {
      fail("the description is of another program: it has another number of inputs or results");
    }
    // The state is allocated and handed over once, for all prompts.
    for (size_t i = 0; i < description_.inputs.size(); ++i) {
      const Border& input = description_.inputs[i];
      if (description_.state.count(input.name) == 0) {
        continue;
      }
      const auto info = take(meta.input_tensor_meta(i), "the state " + input.name + " is no tensor");
      if (info.is_memory_planned()) {
        fail("the program copies " + input.name + " into memory of its own: export it with the three alloc_* flags off");
      }
      const Sizes sizes = input.sizes(axes(1));
      state_[i] = Bytes(bytes_of(sizes, info.scalar_type()));
      set_input(i, sizes, state_[i], info.scalar_type());
    }
  }

  std::vector<int64_t> generate(const std::vector<int64_t>& prompt, size_t count) {
    if (prompt.empty() || prompt.size() + count > static_cast<size_t>(description_.cache) + 1) {
      fail("the cache holds " + std::to_string(description_.cache) + " positions: fewer tokens, or a larger cache");
    }
    for (auto& [index, bytes] : state_) {
      std::fill(bytes.begin(), bytes.end(), 0);
    }
    bind_results(prompt.size());
    std::vector<int64_t> found;
    for (Step step{prompt, 0}; found.size() < count;) {
      found.push_back(next(step));
      step = {{found.back()}, step.past + static_cast<int32_t>(step.ids.size())};
    }
    return found;
  }

  // What the last step handed over: the inputs that were made for it, and its results. The state is not among it.
  size_t bytes_per_step() const { return bytes_per_step_; }

 private:
  std::map<std::string, int32_t> axes(size_t tokens) const {
    return {{"batch", 1}, {"sequence", static_cast<int32_t>(tokens)}, {"cache", description_.cache}};
  }

  void set_input(size_t index, const Sizes& sizes, Bytes& bytes, ScalarType type) {
    const auto tensor = executorch::extension::make_tensor_ptr(sizes, bytes.data(), type);
    check(method_->set_input(*tensor, index), "the program refuses the input " + description_.inputs[index].name);
  }

  size_t input_index(const std::string& name) const {
    const auto& inputs = description_.inputs;
    const auto found =
        std::find_if(inputs.begin(), inputs.end(), [&](const Border& input) { return input.name == name; });
    return static_cast<size_t>(found - inputs.begin());
  }

  // Where result `index` goes: a new value of the state into the state, another one into a buffer of its own.
  Bytes& destination(size_t index) {
    const Border& result = description_.results[index];
    if (!result.updates_input) {
      return buffers_[index];
    }
    const auto found = state_.find(input_index(result.name));
    if (found == state_.end()) {
      fail("the program updates " + result.name + ", which is no state");
    }
    return found->second;
  }

  // Bind every result. `tokens`: the most that a step will feed.
  void bind_results(size_t tokens) {
    for (size_t i = 0; i < description_.results.size(); ++i) {
      const Border& result = description_.results[i];
      const Border& shaped = result.updates_input ? description_.inputs[input_index(result.name)] : result;
      const Tensor tensor = method_->get_output(i).toTensor();
      const Sizes sizes = shaped.sizes(axes(tokens));
      // A result starts with its largest shape, and binding asks for that much memory: gigabytes of logits.
      check(
          executorch::runtime::resize_tensor(tensor, executorch::runtime::ArrayRef<int32_t>(sizes.data(), sizes.size())),
          "the program cannot take so many tokens at once");
      Bytes& bytes = destination(i);
      if (!result.updates_input) {
        bytes.resize(bytes_of(sizes, tensor.scalar_type()));
      }
      check(
          method_->set_output_data_ptr(bytes.data(), bytes.size(), i),
          "the program keeps " + result.name + " in memory of its own: export it with the three alloc_* flags off");
    }
  }

  // One call; returns the next token.
  int64_t next(const Step& step) {
    const auto meta = method_->method_meta();
    bytes_per_step_ = 0;
    for (size_t i = 0; i < description_.inputs.size(); ++i) {
      const Border& input = description_.inputs[i];
      if (state_.count(i) != 0) {
        continue;
      }
      const ScalarType type = take(meta.input_tensor_meta(i), input.name + " is no tensor").scalar_type();
      const Sizes sizes = input.sizes(axes(step.ids.size()));
      Bytes& bytes = feeds_[i];
      bytes.resize(bytes_of(sizes, type));
      fill_input(input.name, bytes, type, step);
      set_input(i, sizes, bytes, type);
      bytes_per_step_ += bytes.size();
    }
    check(method_->execute(), "the step failed");
    check_addresses();
    return read_results();
  }

  // State that moved would have been copied, and the next prompt would start from the wrong one.
  void check_addresses() {
    for (const auto& [index, bytes] : state_) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // nothing else tells where an input is
      const Tensor tensor = method_->get_input(index).toTensor();
#pragma GCC diagnostic pop
      if (tensor.const_data_ptr() != bytes.data()) {
        fail("the state " + description_.inputs[index].name + " has moved");
      }
    }
    for (size_t i = 0; i < description_.results.size(); ++i) {
      if (method_->get_output(i).toTensor().const_data_ptr() != destination(i).data()) {
        fail("the result " + description_.results[i].name + " has moved");
      }
    }
  }

  int64_t read_results() {
    int64_t token = -1;
    for (size_t i = 0; i < description_.results.size(); ++i) {
      if (description_.results[i].updates_input) {
        continue;
      }
      const Tensor tensor = method_->get_output(i).toTensor();
      bytes_per_step_ += tensor.nbytes();
      if (description_.results[i].name == "logits") {
        token = next_token(tensor);
      }
    }
    if (token < 0) {
      fail("the program returns no logits");
    }
    return token;
  }

  Description description_;
  LoadedMethod method_;
  std::map<size_t, Bytes> state_, feeds_, buffers_;
  size_t bytes_per_step_ = 0;
};

std::vector<int64_t> parse_ids(const std::string& text) {
  std::vector<int64_t> ids;
  std::istringstream stream(text);
  for (std::string id; std::getline(stream, id, ',');) {
    ids.push_back(std::atoll(id.c_str()));
  }
  return ids;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> paths;
  std::vector<std::vector<int64_t>> prompts;
  size_t count = 16;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument.rfind("--ids=", 0) == 0) {
      prompts.push_back(parse_ids(argument.substr(6)));
    } else if (argument.rfind("--max-new-tokens=", 0) == 0) {
      count = std::strtoul(argument.c_str() + 17, nullptr, 10);
    } else {
      paths.push_back(argument);
    }
  }
  if (paths.size() != 2 || prompts.empty()) {
    fail("usage: decode <artifact directory> <description> [--max-new-tokens=<n>] --ids=1,5,9 [--ids=...]");
  }
  Decoder decoder(paths[0], paths[1]);
  for (const auto& prompt : prompts) {
    const auto ids = decoder.generate(prompt, count);
    std::cout << "{\"ids\": [";
    for (size_t i = 0; i < ids.size(); ++i) {
      std::cout << (i == 0 ? "" : ", ") << ids[i];
    }
    std::cout << "], \"bytes_per_step\": " << decoder.bytes_per_step() << "}" << std::endl;
  }
  return 0;
}
