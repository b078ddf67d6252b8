// The octree of barnes-hut: space halved in each dimension until every body has a cell of its own.  Each node is one
// block of local memory: the thread that builds a tree is the one that clears it; others may read it in between.
//
// 1. A cell has at least two bodies below it, unless they are closer together than kSmallestBox: those are one leaf.
// 2. centre and mass of a cell are those of all bodies below it, once summarise() has been called.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <new>

#include "memory.h"

namespace bench {

struct Vector {
  double x = 0;
  double y = 0;
  double z = 0;
  Vector operator+(const Vector& other) const { return {x + other.x, y + other.y, z + other.z}; }
  Vector operator-(const Vector& other) const { return {x - other.x, y - other.y, z - other.z}; }
  Vector operator*(double factor) const { return {x * factor, y * factor, z * factor}; }
  double squared() const { return x * x + y * y + z * z; }
};

struct Box {
  Vector middle;
  double half;  // of the edge

  // Becomes the octant that contains the place, and returns its number.
  unsigned descend(const Vector& place) {
    half /= 2;
    return halve(middle.x, place.x) + 2 * halve(middle.y, place.y) + 4 * halve(middle.z, place.z);
  }

 private:
  unsigned halve(double& middle_of_axis, double place_on_axis) const {
    bool upper = place_on_axis >= middle_of_axis;
    middle_of_axis += upper ? half : -half;
    return upper ? 1 : 0;
  }
};

// The effect on a body, for a gravitational constant of 1.
struct Pull {
  Vector acceleration;
  double potential = 0;
};

inline constexpr double kSoftening = 0.02;  // keeps close encounters finite

class Octree {
 public:
  // box: that of the whole tree.
  void insert(const Vector& place, double mass, Box box) {
    Node** slot = &root_;
    while (*slot != nullptr && !(*slot)->is_leaf) slot = &child(*slot, box.descend(place));
    if (Node* other = *slot; other != nullptr) {
      slot = part(slot, *other, place, box);
      if (slot == nullptr) {
        other->mass += mass;
        return;
      }
    }
    *slot = new (local::allocate(sizeof(Node))) Node{place, mass, true};
  }

  void summarise() {
    if (root_ != nullptr) summarise(*root_);
  }
  void pull_on(const Vector& place, Pull& sum) const {
    if (root_ != nullptr) pull_on(*root_, place, sum);
  }
  // Returns how many nodes there were.
  std::size_t clear() {
    std::size_t nodes = root_ == nullptr ? 0 : release(root_);
    root_ = nullptr;
    return nodes;
  }

 private:
  // A cell is opened if it looks wider than this from the body.  Below 1 / sqrt(3), so that no body is ever pulled by a
  // cell that contains it.
  static constexpr double kOpening = 0.5;
  static constexpr double kSmallestBox = 1e-12;

  struct Node {
    Vector centre;
    double mass;
    bool is_leaf;
  };
  struct Cell : Node {
    double width;
    std::array<Node*, 8> children;
  };

  static Node*& child(Node* cell, unsigned octant) { return static_cast<Cell*>(cell)->children[octant]; }

  // The slot for a body where there already is another: adds cells below the slot until the two separate.  Null if they
  // never do.
  static Node** part(Node** slot, Node& other, const Vector& place, Box box) {
    for (Box others = box; box.half > kSmallestBox; others = box) {
      Cell* cell = new (local::allocate(sizeof(Cell))) Cell{{{}, 0, false}, 2 * box.half, {}};
      Node** theirs = &cell->children[others.descend(other.centre)];
      *slot = cell;
      *theirs = &other;
      slot = &cell->children[box.descend(place)];
      if (slot != theirs) return slot;
    }
    return nullptr;
  }

  static void summarise(Node& node) {
    if (node.is_leaf) return;
    for (Node* below : static_cast<Cell&>(node).children) {
      if (below == nullptr) continue;
      summarise(*below);
      node.centre = node.centre + below->centre * below->mass;
      node.mass += below->mass;
    }
    node.centre = node.centre * (1 / node.mass);
  }

  static void pull_on(const Node& node, const Vector& place, Pull& sum) {
    Vector away = node.centre - place;
    double squared = away.squared();
    if (!node.is_leaf) {
      const Cell& cell = static_cast<const Cell&>(node);
      if (cell.width * cell.width > kOpening * kOpening * squared) {
        for (const Node* below : cell.children) {
          if (below != nullptr) pull_on(*below, place, sum);
        }
        return;
      }
    }
    double inverse = 1 / std::sqrt(squared + kSoftening * kSoftening);
    double potential = node.mass * inverse;
    sum.acceleration = sum.acceleration + away * (potential * inverse * inverse);
    sum.potential -= potential;
  }

  static std::size_t release(Node* node) {
    if (node->is_leaf) {
      local::release(node, sizeof(Node));
      return 1;
    }
    std::size_t nodes = 1;
    for (Node* below : static_cast<Cell*>(node)->children) {
      if (below != nullptr) nodes += release(below);
    }
    local::release(node, sizeof(Cell));
    return nodes;
  }

  Node* root_ = nullptr;
};

}  // namespace bench
