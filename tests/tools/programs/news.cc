// Calls every form of new and delete once per round:  news ROUNDS
#include <cstdlib>
#include <new>

struct alignas(128) Wide {
  char bytes[128];
};

int main(int, char** words) {
  for (int i = 0; i < std::atoi(words[1]); ++i) {
    delete new int;
    delete[] new int[100];
    operator delete(operator new(10, std::nothrow), std::nothrow);
    operator delete[](operator new[](10, std::nothrow), std::nothrow);
    delete new Wide;
    delete[] new Wide[2];
    operator delete(operator new(10, std::align_val_t{64}, std::nothrow), std::align_val_t{64}, std::nothrow);
    operator delete[](operator new[](10, std::align_val_t{64}, std::nothrow), std::align_val_t{64}, std::nothrow);
  }
  try {
    operator delete(operator new(static_cast<std::size_t>(-1) / 2));
  } catch (const std::bad_alloc&) { return 0; }
  return 3;
}
