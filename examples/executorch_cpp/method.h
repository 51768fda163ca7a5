// One method of a program, loaded with the runtime's own classes: `Module` hides the `Method` whose outputs are bound.

#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <executorch/extension/data_loader/mmap_data_loader.h>
#include <executorch/extension/flat_tensor/flat_tensor_data_map.h>
#include <executorch/extension/memory_allocator/malloc_memory_allocator.h>
#include <executorch/runtime/executor/program.h>
#include <executorch/runtime/platform/runtime.h>

#include "description.h"

inline void check(executorch::runtime::Error error, const std::string& what) {
  if (error != executorch::runtime::Error::Ok) {
    fail(what + ": error " + std::to_string(static_cast<int>(error)));
  }
}

template <typename T>
T take(executorch::runtime::Result<T> result, const std::string& what) {
  check(result.error(), what);
  return std::move(*result);
}

// Everything that must live as long as the method does.
class LoadedMethod {
 public:
  LoadedMethod(const std::string& directory, const std::vector<std::string>& files, const std::string& preferred) {
    executorch::runtime::runtime_init();
    const std::string path = directory + "/" + files[0];
    program_loader_.emplace(open(path));
    program_.emplace(take(executorch::runtime::Program::load(&*program_loader_), "cannot load " + path));
    if (files.size() > 1) {
      weights_loader_.emplace(open(directory + "/" + files[1]));
      weights_.emplace(
          take(executorch::extension::FlatTensorDataMap::load(&*weights_loader_), "cannot load " + files[1]));
    }
    const std::string name = choose(preferred);
    plan(take(program_->method_meta(name.c_str()), path + " has no method " + name));
    method_.emplace(take(
        program_->load_method(name.c_str(), &*memory_, nullptr, weights_ ? &*weights_ : nullptr),
        "cannot load the method " + name));
  }

  LoadedMethod(const LoadedMethod&) = delete;

  executorch::runtime::Method* operator->() { return &*method_; }

 private:
  static executorch::extension::MmapDataLoader open(const std::string& path) {
    using Loader = executorch::extension::MmapDataLoader;
    return take(Loader::from(path.c_str(), Loader::MlockConfig::NoMlock), "cannot open " + path);
  }

  // A program of one component calls its only method "forward".
  std::string choose(const std::string& preferred) const {
    for (size_t i = 0; i < program_->num_methods(); ++i) {
      if (preferred == take(program_->get_method_name(i), "cannot list the methods")) {
        return preferred;
      }
    }
    return "forward";
  }

  // The memory for activations. `new` without a value leaves it untouched: pages that no step needs cost nothing.
  void plan(const executorch::runtime::MethodMeta& meta) {
    for (size_t i = 0; i < meta.num_memory_planned_buffers(); ++i) {
      const auto size = static_cast<size_t>(take(meta.memory_planned_buffer_size(i), "cannot plan memory"));
      arenas_.emplace_back(new uint8_t[size]);
      spans_.emplace_back(arenas_.back().get(), size);
    }
    planned_.emplace(executorch::runtime::Span<executorch::runtime::Span<uint8_t>>(spans_.data(), spans_.size()));
    memory_.emplace(&method_allocator_, &*planned_, &temporary_allocator_);
  }

  std::optional<executorch::extension::MmapDataLoader> program_loader_, weights_loader_;
  std::optional<executorch::extension::FlatTensorDataMap> weights_;
  std::optional<executorch::runtime::Program> program_;
  executorch::extension::MallocMemoryAllocator method_allocator_, temporary_allocator_;
  std::vector<std::unique_ptr<uint8_t[]>> arenas_;
  std::vector<executorch::runtime::Span<uint8_t>> spans_;
  std::optional<executorch::runtime::HierarchicalAllocator> planned_;
  std::optional<executorch::runtime::MemoryManager> memory_;
  std::optional<executorch::runtime::Method> method_;
};
