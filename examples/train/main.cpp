// Trains a byte-level transformer in a pipeline: ./run train --help
#include "program.hpp"

int main(int argc, char** argv) {
  return train::program(argc, argv);
}
