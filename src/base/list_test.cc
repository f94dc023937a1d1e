#include "base/list.h"

#include <gtest/gtest.h>

#include <vector>

namespace lockd {
namespace {

struct Item {
  explicit Item(int value) : value(value) {}
  int value;
  ListHook<Item> hook;
};

using Items = List<Item, &Item::hook>;

std::vector<int> values(const Items& items) {
  std::vector<int> values;
  for (const Item* i = items.front(); i != nullptr; i = items.next(i)) values.push_back(i->value);
  return values;
}

TEST(List, KeepsTheOrderInWhichItemsWereLinked) {
  Item a{1}, b{2}, c{3}, d{4};
  Items items;
  EXPECT_TRUE(items.empty());
  EXPECT_EQ(items.front(), nullptr);
  EXPECT_EQ(items.back(), nullptr);
  items.push_back(&b);
  items.push_back(&d);
  items.push_front(&a);
  items.insert_before(&c, &d);
  EXPECT_EQ(values(items), (std::vector{1, 2, 3, 4}));
  EXPECT_EQ(items.back(), &d);
}

TEST(List, RemovesFromAnywhere) {
  Item a{1}, b{2}, c{3};
  for (Item* removed : {&a, &b, &c}) {
    Items items;
    items.push_back(&a);
    items.push_back(&b);
    items.push_back(&c);
    items.remove(removed);
    EXPECT_FALSE(removed->hook.linked());
    std::vector<int> left{1, 2, 3};
    std::erase(left, removed->value);
    EXPECT_EQ(values(items), left);
    while (items.pop_front() != nullptr) {
    }
    EXPECT_TRUE(items.empty());
  }
}

TEST(List, InsertsBeforeTheFirst) {
  Item a{1}, b{2};
  Items items;
  items.push_back(&b);
  items.insert_before(&a, &b);
  EXPECT_EQ(values(items), (std::vector{1, 2}));
}

TEST(List, MovesWithItsItems) {
  Item a{1}, b{2};
  Items items;
  items.push_back(&a);
  items.push_back(&b);
  Items moved(std::move(items));
  EXPECT_EQ(values(moved), (std::vector{1, 2}));
  moved.remove(&a);
  EXPECT_EQ(values(moved), (std::vector{2}));
}

}  // namespace
}  // namespace lockd
