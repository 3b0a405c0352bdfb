// The memory plan of an unrolled recurrent net: greedy placement alone, and with the search, in one
// run. Counters: bytes of the arena, the liveness bound, nodes of the search.
#include <benchmark/benchmark.h>

#include <vector>

#include "compiler_core/memplan/plan.h"

namespace npuc {
namespace {

// As TensorFlow's GRUCell lowers: 30 commands a turn; the input's slices are cut at first.
std::vector<PlacementItem> UnrolledGru(int turns) {
  constexpr PlacementItem kTurn[] = {
      {328, {0, 3}},   {616, {3, 5}},   {616, {4, 7}},   {616, {6, 11}},  {308, {8, 17}},
      {308, {10, 15}}, {308, {12, 29}}, {308, {14, 27}}, {308, {16, 20}}, {328, {18, 21}},
      {308, {21, 23}}, {308, {22, 25}}, {308, {24, 27}}, {308, {26, 29}}, {308, {28, 47}}};
  std::vector<PlacementItem> items;
  for (int i = 0; i < turns; ++i) items.push_back({20, {i, turns + 18 + 30 * i}});
  for (int i = 0; i < turns; ++i) {
    for (const PlacementItem& item : kTurn) {
      const int32_t start = turns + 30 * i;
      items.push_back({item.size_bytes, {start + item.range.first, start + item.range.last}});
    }
  }
  return items;
}

void Report(const PlacementResult& result, benchmark::State& state) {
  state.counters["arena"] = static_cast<double>(result.plan.arena_bytes);
  state.counters["bound"] = static_cast<double>(result.plan.lower_bound_bytes);
  state.counters["nodes"] = static_cast<double>(result.plan.search_nodes);
}

void BM_Greedy(benchmark::State& state) {
  const std::vector<PlacementItem> items = UnrolledGru(static_cast<int>(state.range(0)));
  PlacementResult result;
  for (auto _ : state) {
    result = PlaceGreedily(items);
    benchmark::DoNotOptimize(result.offsets.data());
  }
  Report(result, state);
}
BENCHMARK(BM_Greedy)->Arg(5)->Arg(25)->Arg(49);

void BM_GreedyAndSearch(benchmark::State& state) {
  const std::vector<PlacementItem> items = UnrolledGru(static_cast<int>(state.range(0)));
  PlacementResult result;
  for (auto _ : state) {
    result = PlaceGreedily(items);
    SearchPlacement(items, 4, kPlacementNodes, result);
    benchmark::DoNotOptimize(result.offsets.data());
  }
  Report(result, state);
}
BENCHMARK(BM_GreedyAndSearch)->Arg(5)->Arg(25)->Arg(49);

}  // namespace
}  // namespace npuc

BENCHMARK_MAIN();
