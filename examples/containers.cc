// Standard containers on local and on shared memory, by allocator type and by std::pmr.
#include <hmalloc/hmalloc.hpp>

#include <cstdio>
#include <memory>
#include <memory_resource>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

struct Message {
  int from;
  double value;
};

int main() {
  // For this thread only: events that are made, sorted and dropped here.
  std::vector<int, hm::local_allocator<int>> events;
  for (int i = 0; i < 1000; ++i) events.push_back(i);

  // Freed by the thread that holds it last.
  auto message = std::allocate_shared<Message>(hm::shared_allocator<Message>(), Message{1, 2.5});
  std::thread receiver([message = std::move(message)]() mutable { message.reset(); });
  receiver.join();

  // The same with std::pmr: one type of container for every source of memory.
  std::pmr::unordered_map<int, std::pmr::string> names(hm::local_resource());
  names.emplace(7, "a name that is too long for the small string buffer");

  std::printf("%zu events, %zu name\n", events.size(), names.size());
  return events.size() == 1000 && names.size() == 1 ? 0 : 1;
}
