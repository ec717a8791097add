// The whole program, but for its main.
#pragma once

namespace train {

//! @return the exit code
int program(int argc, char** argv);

}  // namespace train
