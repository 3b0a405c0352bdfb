// Dynamically linked with the C++ library and does nothing: the floor of any C++ program's time.

#include <iostream>

int main() {
  // A symbol of libstdc++, so that the linker keeps it.
  return std::cout.good() ? 0 : 1;
}
