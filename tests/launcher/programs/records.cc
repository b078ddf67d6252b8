// Blocks that the standard library asks for, most of it inline: one thread makes records, another one deletes them.
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace {

struct Record {
  std::string name;
  std::vector<int> numbers;
};

__attribute__((noinline)) Record* make_record(int number) {
  auto record = std::make_unique<Record>();
  record->name.assign(60, 'a');
  record->numbers.push_back(number);
  record->numbers.resize(40);
  return record.release();
}

__attribute__((noinline)) void delete_all(std::vector<Record*>& records) {
  for (Record* record : records) delete record;
}

}  // namespace

int main() {
  std::vector<Record*> records;
  for (int i = 0; i < 20000; ++i) records.push_back(make_record(i));
  std::thread([&records] { delete_all(records); }).join();
}
