#pragma once

#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <string>

namespace stretto::test {

//! What the process writes to its standard error, while it lives.
class captured_errors {
 public:
  captured_errors() : file_(std::tmpfile()), before_(dup(STDERR_FILENO)) {
    std::fflush(stderr);
    dup2(fileno(file_), STDERR_FILENO);
  }
  captured_errors(const captured_errors&) = delete;
  captured_errors& operator=(const captured_errors&) = delete;
  ~captured_errors() {
    dup2(before_, STDERR_FILENO);
    close(before_);
    std::fclose(file_);
  }
  std::string text() const {
    char read[4096];
    const ssize_t size = pread(fileno(file_), read, sizeof read, 0);
    return {read, static_cast<std::size_t>(size > 0 ? size : 0)};
  }

 private:
  std::FILE* file_;
  int before_;
};

}  // namespace stretto::test
