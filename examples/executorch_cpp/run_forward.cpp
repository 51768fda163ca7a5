// Run one method of an exported program on raw input files and write its outputs as raw files.
//
//   run_forward <program.pte> <output directory> [--method=<name>] <shape>[=<file>] ...
//
// One argument an input, in the order of the component's inputs in manifest.json: its sizes, and a file with its
// values in row-major order. An input without a file is filled with ones. Each output i is written to output_i.bin,
// and its dtype and sizes are printed.

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include <executorch/extension/module/module.h>
#include <executorch/extension/tensor/tensor.h>

using executorch::aten::ScalarType;
using executorch::aten::SizesType;
using executorch::extension::Module;
using executorch::extension::TensorPtr;
using executorch::runtime::EValue;

namespace {

[[noreturn]] void fail(const std::string& message) {
  std::cerr << "run_forward: " << message << "\n";
  std::exit(1);
}

// "2x7" -> {2, 7}; "scalar" -> {}.
std::vector<SizesType> parse_sizes(const std::string& text) {
  std::vector<SizesType> sizes;
  if (text == "scalar") {
    return sizes;
  }
  for (size_t start = 0; start <= text.size();) {
    const size_t end = std::min(text.find('x', start), text.size());
    sizes.push_back(static_cast<SizesType>(std::stol(text.substr(start, end - start))));
    start = end + 1;
  }
  return sizes;
}

template <typename T>
void fill_with_ones(std::vector<uint8_t>& bytes) {
  auto* values = reinterpret_cast<T*>(bytes.data());
  std::fill(values, values + bytes.size() / sizeof(T), static_cast<T>(1));
}

std::vector<uint8_t> read_values(const std::string& file, ScalarType type, size_t count) {
  const size_t size = count * executorch::runtime::elementSize(type);
  std::vector<uint8_t> bytes(size);
  if (!file.empty()) {
    std::ifstream stream(file, std::ios::binary);
    if (!stream.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(size))) {
      fail(file + " is missing or holds fewer than " + std::to_string(size) + " bytes");
    }
    return bytes;
  }
  switch (type) {
    case ScalarType::Float: fill_with_ones<float>(bytes); break;
    case ScalarType::Double: fill_with_ones<double>(bytes); break;
    case ScalarType::Long: fill_with_ones<int64_t>(bytes); break;
    case ScalarType::Int: fill_with_ones<int32_t>(bytes); break;
    case ScalarType::Bool:
    case ScalarType::Byte:
    case ScalarType::Char: fill_with_ones<int8_t>(bytes); break;
    default: fail("this dtype needs a file");
  }
  return bytes;
}

void write_output(const std::string& directory, size_t index, const executorch::aten::Tensor& tensor) {
  std::cout << "output " << index << " " << executorch::runtime::toString(tensor.scalar_type());
  for (const auto size : tensor.sizes()) {
    std::cout << " " << size;
  }
  std::cout << "\n";
  std::ofstream stream(directory + "/output_" + std::to_string(index) + ".bin", std::ios::binary);
  stream.write(static_cast<const char*>(tensor.const_data_ptr()), static_cast<std::streamsize>(tensor.nbytes()));
  if (!stream) {
    fail("cannot write to " + directory);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    fail("usage: run_forward <program.pte> <output directory> [--method=<name>] <shape>[=<file>] ...");
  }
  std::string method = "forward";
  std::vector<std::string> arguments;
  for (int i = 3; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument.rfind("--method=", 0) == 0) {
      method = argument.substr(9);
    } else {
      arguments.push_back(argument);
    }
  }

  Module module(argv[1]);
  const auto meta = module.method_meta(method);
  if (!meta.ok()) {
    fail(std::string(argv[1]) + " has no method " + method);
  }
  if (meta->num_inputs() != arguments.size()) {
    fail(method + " takes " + std::to_string(meta->num_inputs()) + " inputs, got " + std::to_string(arguments.size()));
  }

  // The tensors refer to these values; both live until the outputs are written.
  std::vector<std::vector<uint8_t>> values;
  std::vector<TensorPtr> tensors;
  std::vector<EValue> inputs;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const size_t equals = arguments[i].find('=');
    const auto sizes = parse_sizes(arguments[i].substr(0, equals));
    const std::string file = equals == std::string::npos ? "" : arguments[i].substr(equals + 1);
    size_t count = 1;
    for (const auto size : sizes) {
      count *= static_cast<size_t>(size);
    }
    const ScalarType type = meta->input_tensor_meta(i)->scalar_type();
    values.push_back(read_values(file, type, count));
    tensors.push_back(executorch::extension::make_tensor_ptr(sizes, values.back().data(), type));
    inputs.emplace_back(*tensors.back());
  }

  const auto outputs = module.execute(method, inputs);
  if (!outputs.ok()) {
    fail(method + " failed with error " + std::to_string(static_cast<int>(outputs.error())));
  }
  for (size_t i = 0; i < outputs->size(); ++i) {
    if (outputs->at(i).isTensor()) {
      write_output(argv[2], i, outputs->at(i).toTensor());
    }
  }
  return 0;
}
