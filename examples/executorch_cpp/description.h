// What describe.py wrote about a decode graph: its file, its inputs and results in the runtime's order, and its state.

#pragma once

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

[[noreturn]] inline void fail(const std::string& message) {
  std::cerr << "decode: " << message << "\n";
  std::exit(1);
}

struct Border {
  std::string name;
  // Numbers, and names of axes that are chosen at run time.
  std::vector<std::string> shape;
  // A result that is the new value of the input of this name; it has no shape of its own.
  bool updates_input = false;

  std::vector<int32_t> sizes(const std::map<std::string, int32_t>& axes) const {
    std::vector<int32_t> sizes;
    for (const auto& size : shape) {
      const auto axis = axes.find(size);
      const bool number = size.find_first_not_of("0123456789") == std::string::npos;
      if (axis == axes.end() && !number) {
        fail("this loop has no size for the axis " + size + " of " + name);
      }
      sizes.push_back(number ? std::stoi(size) : axis->second);
    }
    return sizes;
  }
};

struct Description {
  // The program, and where they are apart, its weights; both relative to the artifact's directory.
  std::vector<std::string> files;
  int32_t cache = 0;
  std::vector<Border> inputs;
  std::vector<Border> results;
  std::set<std::string> state;

  explicit Description(const std::string& path) {
    std::ifstream stream(path);
    for (std::string line; std::getline(stream, line);) {
      read(line);
    }
    if (files.empty() || cache == 0 || inputs.empty()) {
      fail(path + " describes no decode graph over a static cache: make it with describe.py");
    }
  }

 private:
  void read(const std::string& line) {
    std::istringstream stream(line);
    std::string kind;
    stream >> kind;
    std::vector<std::string> words;
    for (std::string word; stream >> word;) {
      words.push_back(word);
    }
    if (words.empty()) {
      fail("cannot read the line: " + line);
    }
    const std::vector<std::string> rest(words.begin() + 1, words.end());
    if (kind == "program") {
      files = words;
    } else if (kind == "cache") {
      cache = std::atoi(words[0].c_str());
    } else if (kind == "input") {
      inputs.push_back({words[0], rest});
    } else if (kind == "state") {
      state.insert(words[0]);
    } else if (kind == "updated") {
      results.push_back({words[0], {}, true});
    } else if (kind == "output") {
      results.push_back({words[0], rest});
    } else {
      fail("cannot read the line: " + line);
    }
  }
};
