#include "server/jobs/job_index.h"

#include <string.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <limits>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "compiler_core/base/digest.h"

namespace npuc::jobs {
namespace {

// So many changes wait before a Put takes them into the rows.
constexpr size_t kMaxPending = 256;
constexpr uint64_t kLast = std::numeric_limits<uint64_t>::max();

uint64_t HashOf(absl::string_view key, absl::string_view value, bool has_value) {
  return std::hash<std::string>()(
      absl::StrCat(key, has_value ? absl::string_view("\0=", 2) : "", value));
}

// The first eight bytes, so that numbers compare as the texts do.
uint64_t BeginOf(absl::string_view text) {
  uint64_t value = 0;
  for (size_t i = 0; i < sizeof(value); ++i) {
    value = value << 8 | (i < text.size() ? static_cast<uint8_t>(text[i]) : 0);
  }
  return value;
}

std::string NameOf(const Job& job) {
  return absl::StrCat(job.output_file, job.output_file.empty() ? "" : "\n", job.spec.config_name);
}

std::string LabelsOf(const Job& job) {
  std::string text;
  for (const auto& [key, value] : job.spec.labels) absl::StrAppend(&text, key, "=", value, "\n");
  return text;
}

int Nibble(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

std::array<uint8_t, 16> Md5Bytes(absl::string_view hex) {
  std::array<uint8_t, 16> bytes = {};
  for (size_t i = 0; i + 1 < hex.size() && i / 2 < bytes.size(); i += 2) {
    bytes[i / 2] = static_cast<uint8_t>(Nibble(hex[i]) << 4 | Nibble(hex[i + 1]));
  }
  return bytes;
}

bool BeginsWith(const std::array<uint8_t, 16>& bytes, absl::string_view hex) {
  for (size_t i = 0; i < hex.size(); ++i) {
    const int nibble = i % 2 == 0 ? bytes[i / 2] >> 4 : bytes[i / 2] & 15;
    if (nibble != Nibble(hex[i])) return false;
  }
  return true;
}

}  // namespace

struct JobIndex::Wanted {
  std::array<bool, 8> states = {};
  // By index of a text; empty: all.
  std::array<std::vector<char>, kKinds> texts = {};
  std::optional<std::array<std::vector<char>, kKinds>> hits = {};  // of the filter's text
  std::string id_begin = {};
  std::string md5_begin = {};  // empty: it can be none
  int64_t from_micros = 0;
  int64_t before_micros = 0;

  bool Has(const Rows& rows, size_t row) const {
    if (!states[static_cast<size_t>(rows.states[row])]) return false;
    const int64_t created = rows.create_micros[row];
    if (created < from_micros || created >= before_micros) return false;
    for (size_t kind = 0; kind < kKinds; ++kind) {
      if (!texts[kind].empty() && texts[kind][rows.texts[kind][row]] == 0) return false;
    }
    return !hits.has_value() || HasText(rows, row);
  }

 private:
  bool HasText(const Rows& rows, size_t row) const {
    for (size_t kind = 0; kind < kKinds; ++kind) {
      if (!(*hits)[kind].empty() && (*hits)[kind][rows.texts[kind][row]] != 0) return true;
    }
    return absl::StartsWithIgnoreCase(rows.id(row), id_begin) ||
           (!md5_begin.empty() && BeginsWith(rows.md5s[row], md5_begin));
  }
};

uint32_t JobIndex::Texts::Take(const std::string& key, const std::function<Text()>& make) {
  const auto found = by_key_.find(key);
  if (found != by_key_.end()) {
    ++all_[found->second].uses;
    return found->second;
  }
  uint32_t index = static_cast<uint32_t>(all_.size());
  if (free_.empty()) {
    all_.emplace_back();
  } else {
    index = free_.back();
    free_.pop_back();
  }
  Text made = make();
  all_[index].key = key;
  all_[index].shown = std::move(made.shown);
  all_[index].uses = 1;
  Append(index, made.text, made.hashes.data(), made.hashes.size());
  by_key_.emplace(key, index);
  return index;
}

void JobIndex::Texts::Append(uint32_t index, absl::string_view text, const uint64_t* hashes,
                             size_t hash_count) {
  Entry& entry = all_[index];
  entry.text_at = texts_.size();
  entry.text_bytes = static_cast<uint32_t>(text.size());
  entry.hash_at = hashes_.size();
  entry.hash_count = static_cast<uint32_t>(hash_count);
  texts_.append(text.data(), text.size());
  // An empty text has a place of its own, too.
  texts_.push_back('\0');
  hashes_.insert(hashes_.end(), hashes, hashes + hash_count);
  places_.push_back({entry.text_at, index});
}

void JobIndex::Texts::Drop(uint32_t index) {
  Entry& entry = all_[index];
  if (--entry.uses > 0) return;
  by_key_.erase(entry.key);
  entry.key = std::string();
  entry.shown = std::string();
  free_.push_back(index);
  ++dropped_;
  constexpr size_t kFew = 1024;
  if (dropped_ > kFew && dropped_ > places_.size() / 2) Compact();
}

void JobIndex::Texts::Compact() {
  const std::string texts = std::exchange(texts_, {});
  const std::vector<uint64_t> hashes = std::exchange(hashes_, {});
  const std::vector<Place> places = std::exchange(places_, {});
  dropped_ = 0;
  // `all_` has the old places until each is appended: two that were at one place cannot be.
  for (const Place& place : places) {
    const Entry entry = all_[place.index];
    if (entry.uses == 0 || entry.text_at != place.text_at) continue;
    Append(place.index, absl::string_view(texts).substr(entry.text_at, entry.text_bytes),
           hashes.data() + entry.hash_at, entry.hash_count);
  }
}

std::vector<char> JobIndex::Texts::WithText(absl::string_view part) const {
  std::vector<char> found(all_.size(), 0);
  const char* const begin = texts_.data();
  const char* const end = begin + texts_.size();
  const char* at = begin;
  // Quicker than string_view::find, which stops at each first letter.
  while ((at = static_cast<const char*>(
              memmem(at, static_cast<size_t>(end - at), part.data(), part.size()))) != nullptr) {
    const auto position = static_cast<size_t>(at - begin);
    auto place =
        std::upper_bound(places_.begin(), places_.end(), position,
                         [](size_t wanted, const Place& one) { return wanted < one.text_at; });
    --place;
    const Entry& entry = all_[place->index];
    if (!IsThere(*place)) {
      at = begin + (std::next(place) == places_.end() ? texts_.size() : std::next(place)->text_at);
    } else if (position + part.size() <= entry.text_at + entry.text_bytes) {
      found[place->index] = 1;
      at = begin + entry.text_at + entry.text_bytes;
    } else {
      ++at;  // it goes over the end of this text
    }
  }
  return found;
}

std::vector<char> JobIndex::Texts::WithHashes(const std::vector<uint64_t>& hashes) const {
  std::vector<char> found(all_.size(), 0);
  for (const Place& place : places_) {
    if (!IsThere(place)) continue;
    const Entry& entry = all_[place.index];
    const auto begin = hashes_.begin() + static_cast<ptrdiff_t>(entry.hash_at);
    const auto end = begin + entry.hash_count;
    found[place.index] = std::all_of(hashes.begin(), hashes.end(), [&](uint64_t hash) {
      return std::find(begin, end, hash) != end;
    });
  }
  return found;
}

std::vector<char> JobIndex::Texts::Where(
    const std::function<bool(const std::string& shown)>& has) const {
  std::vector<char> found(all_.size(), 0);
  for (size_t i = 0; i < found.size(); ++i) found[i] = has(all_[i].shown) ? 1 : 0;
  return found;
}

size_t JobIndex::Rows::LowerBound(absl::string_view id) const {
  const auto place =
      std::lower_bound(ids.begin(), ids.end(), id, [](const Id& one, absl::string_view wanted) {
        return absl::string_view(one.data(), one.size()) < wanted;
      });
  return static_cast<size_t>(place - ids.begin());
}

template <typename Visit>
void JobIndex::Rows::ForEachColumn(Visit visit) {
  visit(ids, &Row::id);
  visit(states, &Row::state);
  visit(name_begins, &Row::name_begin);
  visit(revisions, &Row::revision);
  visit(create_micros, &Row::create_micros);
  visit(end_micros, &Row::end_micros);
  visit(md5s, &Row::md5);
}

void JobIndex::Rows::Insert(size_t at, const Row& row) {
  const auto place = static_cast<ptrdiff_t>(at);
  ForEachColumn(
      [&](auto& column, auto field) { column.insert(column.begin() + place, row.*field); });
  for (size_t kind = 0; kind < kKinds; ++kind) {
    texts[kind].insert(texts[kind].begin() + place, row.texts[kind]);
  }
}

void JobIndex::Rows::Set(size_t at, const Row& row) {
  ForEachColumn([&](auto& column, auto field) { column[at] = row.*field; });
  for (size_t kind = 0; kind < kKinds; ++kind) texts[kind][at] = row.texts[kind];
}

void JobIndex::Rows::Gather(const std::vector<uint32_t>& from) {
  const auto gather = [&](auto& column) {
    auto gathered = column;
    gathered.resize(from.size());
    for (size_t i = 0; i < from.size(); ++i) gathered[i] = column[from[i]];
    column = std::move(gathered);
  };
  ForEachColumn([&](auto& column, auto /*field*/) { gather(column); });
  for (auto& column : texts) gather(column);
}

void JobIndex::Put(const Job& job) {
  Job kept = job;
  kept.artifacts.clear();
  kept.diagnostics.clear();
  bool is_due = false;
  {
    const MutexLock lock(pending_mutex_);
    pending_.push_back(std::move(kept));
    is_due = pending_.size() >= kMaxPending;
  }
  if (!is_due || !mutex_.TryLock()) return;
  Drain();
  mutex_.Unlock();
}

void JobIndex::SetComplete() {
  const MutexLock lock(mutex_);
  Drain();
  Sort();
  is_complete_.store(true);
}

void JobIndex::Drain() {
  std::vector<Job> pending;
  {
    const MutexLock lock(pending_mutex_);
    pending.swap(pending_);
  }
  for (const Job& job : pending) Insert(job);
}

JobIndex::Row JobIndex::MakeRow(const Job& job) {
  Row row;
  std::copy_n(job.id.begin(), std::min(job.id.size(), row.id.size()), row.id.begin());
  row.state = job.state;
  const auto take = [&](Kind kind, const std::string& text) NPUC_REQUIRES(mutex_) {
    row.texts[kind] = texts_[kind].Take(text, [&] {
      return Text{.text = absl::AsciiStrToLower(text), .shown = text, .hashes = {}};
    });
  };
  take(kTenants, job.tenant);
  take(kCores, job.spec.core);
  take(kFrameworks, job.spec.framework);
  take(kNames, NameOf(job));
  take(kSubmitters, job.spec.submitter);
  const std::string labels = LabelsOf(job);
  row.texts[kLabels] =
      texts_[kLabels].Take(labels.size() > kIndexedLabelBytes ? Sha256Hex(labels) : labels, [&] {
        Text text{.text = absl::AsciiStrToLower(labels.substr(0, kIndexedLabelBytes)),
                  .shown = {},
                  .hashes = {}};
        for (const auto& [key, value] : job.spec.labels) {
          text.hashes.push_back(HashOf(key, "", false));
          text.hashes.push_back(HashOf(key, value, true));
        }
        return text;
      });
  row.name_begin = BeginOf(texts_[kNames].text(row.texts[kNames]));
  row.revision = job.revision;
  row.create_micros = absl::ToUnixMicros(job.create_time);
  if (job.end_time != absl::InfinitePast()) row.end_micros = absl::ToUnixMicros(job.end_time);
  row.md5 = Md5Bytes(job.model().md5);
  return row;
}

void JobIndex::DropTexts(size_t row) {
  for (size_t kind = 0; kind < kKinds; ++kind) texts_[kind].Drop(rows_.texts[kind][row]);
}

void JobIndex::Insert(const Job& job) {
  if (job.id.size() != kIdBytes) return;
  if (!is_complete()) {
    // In its place, each would move all before it: the load comes from the newest on.
    rows_.Insert(rows_.size(), MakeRow(job));
    is_sorted_ = false;
    return;
  }
  const size_t place = rows_.LowerBound(job.id);
  if (place == rows_.size() || rows_.id(place) != job.id) {
    rows_.Insert(place, MakeRow(job));
    return;
  }
  if (rows_.revisions[place] >= job.revision) return;
  const Row row = MakeRow(job);
  DropTexts(place);
  rows_.Set(place, row);
}

void JobIndex::Sort() {
  if (is_sorted_) return;
  std::vector<uint32_t> order(rows_.size());
  for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  // The newest revision of a job comes first, and stays.
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) NPUC_REQUIRES(mutex_) {
    return rows_.ids[a] != rows_.ids[b] ? rows_.ids[a] < rows_.ids[b]
                                        : rows_.revisions[a] > rows_.revisions[b];
  });
  std::vector<uint32_t> kept;
  kept.reserve(order.size());
  for (const uint32_t row : order) {
    if (!kept.empty() && rows_.ids[kept.back()] == rows_.ids[row]) {
      DropTexts(row);
    } else {
      kept.push_back(row);
    }
  }
  rows_.Gather(kept);
  is_sorted_ = true;
}

void JobIndex::DropEnded(absl::Time before, size_t count) {
  const MutexLock lock(mutex_);
  Drain();
  Sort();
  const int64_t end = absl::ToUnixMicros(before);
  std::vector<std::pair<int64_t, uint32_t>> ended;  // and the row
  for (uint32_t row = 0; row < rows_.size(); ++row) {
    const int64_t ended_at = rows_.end_micros[row];
    if (ended_at != 0 && ended_at < end) ended.emplace_back(ended_at, row);
  }
  if (ended.size() > count) {
    std::nth_element(ended.begin(), ended.begin() + static_cast<ptrdiff_t>(count), ended.end());
    ended.resize(count);
  }
  if (ended.empty()) return;
  std::vector<char> is_gone(rows_.size(), 0);
  for (const auto& [ended_at, row] : ended) is_gone[row] = 1;
  std::vector<uint32_t> kept;
  for (uint32_t row = 0; row < rows_.size(); ++row) {
    if (is_gone[row] == 0) {
      kept.push_back(row);
    } else {
      DropTexts(row);
    }
  }
  rows_.Gather(kept);
}

size_t JobIndex::size() {
  const MutexLock lock(mutex_);
  Drain();
  Sort();
  return rows_.size();
}

std::optional<absl::Time> JobIndex::OldestQueued() {
  const MutexLock lock(mutex_);
  Drain();
  Sort();
  std::optional<int64_t> oldest;
  for (size_t row = 0; row < rows_.size(); ++row) {
    if (rows_.states[row] != JobState::kQueued) continue;
    oldest = std::min(oldest.value_or(rows_.create_micros[row]), rows_.create_micros[row]);
  }
  if (!oldest.has_value()) return std::nullopt;
  return absl::FromUnixMicros(*oldest);
}

JobIndex::Wanted JobIndex::Prepare(const JobFilter& filter) const {
  Wanted wanted;
  if (filter.states.empty()) wanted.states.fill(true);
  for (const JobState state : filter.states) wanted.states[static_cast<size_t>(state)] = true;
  const auto among = [&](Kind kind, const std::vector<std::string>& names) NPUC_REQUIRES(mutex_) {
    if (names.empty()) return;
    wanted.texts[kind] = texts_[kind].Where([&](const std::string& shown) {
      return std::find(names.begin(), names.end(), shown) != names.end();
    });
  };
  among(kCores, filter.cores);
  among(kFrameworks, filter.frameworks);
  if (!filter.submitter.empty()) among(kSubmitters, {filter.submitter});
  wanted.texts[kTenants] = texts_[kTenants].Where([&](const std::string& shown) {
    const auto& names = filter.tenants;
    return filter.only_tenant.value_or(shown) == shown &&
           (filter.hidden_tenant.empty() || shown != filter.hidden_tenant) &&
           (names.empty() || std::find(names.begin(), names.end(), shown) != names.end());
  });
  if (!filter.labels.empty()) {
    std::vector<uint64_t> hashes;
    for (const auto& [key, value] : filter.labels) {
      hashes.push_back(HashOf(key, value.value_or(""), value.has_value()));
    }
    wanted.texts[kLabels] = texts_[kLabels].WithHashes(hashes);
  }
  wanted.from_micros = filter.created_from == absl::InfinitePast()
                           ? std::numeric_limits<int64_t>::min()
                           : absl::ToUnixMicros(filter.created_from);
  wanted.before_micros = absl::ToUnixMicros(filter.created_before);
  if (filter.text.empty()) return wanted;
  const std::string lower = absl::AsciiStrToLower(filter.text);
  wanted.hits.emplace();
  for (const Kind kind : {kTenants, kNames, kLabels, kSubmitters}) {
    (*wanted.hits)[kind] = texts_[kind].WithText(lower);
  }
  wanted.id_begin = lower;
  if (lower.size() <= 32 &&
      std::all_of(lower.begin(), lower.end(), [](char c) { return Nibble(c) >= 0; })) {
    wanted.md5_begin = lower;
  }
  return wanted;
}

void JobIndex::Add(size_t row, Counts& counts) const {
  ++counts.jobs;
  ++counts.states[static_cast<size_t>(rows_.states[row])];
  for (const Kind kind : {kTenants, kCores, kFrameworks}) {
    ++counts.texts[kind][rows_.texts[kind][row]];
  }
}

JobTotals JobIndex::TotalsOf(const Counts& counts) const {
  JobTotals totals{.jobs = counts.jobs};
  for (size_t i = 0; i < counts.states.size(); ++i) {
    if (counts.states[i] > 0) totals.states[static_cast<JobState>(i)] = counts.states[i];
  }
  const auto name = [&](Kind kind, std::map<std::string, int64_t>& to, size_t most)
                        NPUC_REQUIRES(mutex_) {
                          std::vector<std::pair<int64_t, std::string>> found;
                          for (uint32_t i = 0; i < counts.texts[kind].size(); ++i) {
                            const std::string& shown = texts_[kind].shown(i);
                            if (counts.texts[kind][i] > 0 && !shown.empty()) {
                              found.emplace_back(-counts.texts[kind][i], shown);
                            }
                          }
                          std::sort(found.begin(), found.end());
                          if (found.size() > most) found.resize(most);
                          for (const auto& [count, text] : found) to[text] = -count;
                        };
  name(kTenants, totals.tenants, kMaxTenantTotals);
  name(kCores, totals.cores, kMaxTenantTotals);
  name(kFrameworks, totals.frameworks, kMaxTenantTotals);
  return totals;
}

void JobIndex::FindByTime(const Query& query, const Wanted& wanted, Counts& counts, Page& page) {
  const size_t count = rows_.size();
  for (size_t i = 0; i < count; ++i) {
    const size_t row = query.reverse ? i : count - 1 - i;
    if (!wanted.Has(rows_, row)) continue;
    if (query.with_totals) Add(row, counts);
    if (page.has_more) continue;
    const absl::string_view id = rows_.id(row);
    const bool is_behind =
        query.after_id.empty() || (query.reverse ? id > query.after_id : id < query.after_id);
    if (!is_behind) continue;
    if (page.ids.size() < query.limit) {
      page.ids.emplace_back(id);
      continue;
    }
    page.has_more = true;
    if (!query.with_totals) return;
  }
}

std::vector<uint64_t> JobIndex::RanksOf(Kind kind) const {
  std::vector<uint32_t> sorted(texts_[kind].size());
  for (uint32_t i = 0; i < sorted.size(); ++i) sorted[i] = i;
  std::sort(sorted.begin(), sorted.end(), [&](uint32_t a, uint32_t b) NPUC_REQUIRES(mutex_) {
    return texts_[kind].text(a) < texts_[kind].text(b);
  });
  std::vector<uint64_t> ranks(sorted.size());
  for (size_t i = 0; i < sorted.size(); ++i) ranks[sorted[i]] = i;
  return ranks;
}

// By row: what it is ordered by.
std::vector<uint64_t> JobIndex::KeysOf(JobOrder order) const {
  std::vector<uint64_t> keys(rows_.size());
  const auto by_text = [&](Kind kind) NPUC_REQUIRES(mutex_) {
    const std::vector<uint64_t> ranks = RanksOf(kind);
    for (size_t row = 0; row < keys.size(); ++row) keys[row] = ranks[rows_.texts[kind][row]];
  };
  switch (order) {
    case JobOrder::kCreateTime:
      for (size_t row = 0; row < keys.size(); ++row) {
        keys[row] = kLast - static_cast<uint64_t>(rows_.create_micros[row]);
      }
      break;
    case JobOrder::kEndTime:
      for (size_t row = 0; row < keys.size(); ++row) {
        const int64_t ended = rows_.end_micros[row];
        keys[row] = ended != 0 ? kLast - static_cast<uint64_t>(ended) : 0;
      }
      break;
    case JobOrder::kTook:
      for (size_t row = 0; row < keys.size(); ++row) {
        const int64_t ended = rows_.end_micros[row];
        const int64_t took = std::max<int64_t>(0, ended - rows_.create_micros[row]);
        keys[row] = ended != 0 ? kLast - 1 - static_cast<uint64_t>(took) : kLast;
      }
      break;
    case JobOrder::kName:
      return rows_.name_begins;
    case JobOrder::kState:
      for (size_t row = 0; row < keys.size(); ++row) {
        keys[row] = static_cast<uint64_t>(rows_.states[row]);
      }
      break;
    case JobOrder::kCore:
      by_text(kCores);
      break;
    case JobOrder::kFramework:
      by_text(kFrameworks);
      break;
    case JobOrder::kTenant:
      by_text(kTenants);
      break;
  }
  return keys;
}

void JobIndex::FindSorted(const Query& query, const Wanted& wanted, Counts& counts, Page& page) {
  const std::vector<uint64_t> keys = KeysOf(query.order);
  const std::vector<uint32_t>& names = rows_.texts[kNames];
  const bool by_name = query.order == JobOrder::kName;
  const auto is_before = [&](const Place& a, const Place& b) NPUC_REQUIRES(mutex_) {
    if (a.key != b.key) return (a.key < b.key) != query.reverse;
    if (by_name && names[a.row] != names[b.row]) {
      const int order =
          texts_[kNames].text(names[a.row]).compare(texts_[kNames].text(names[b.row]));
      if (order != 0) return (order < 0) != query.reverse;
    }
    return a.row > b.row;
  };
  Place after;
  if (!query.after_id.empty()) {
    const size_t row = rows_.LowerBound(query.after_id);
    page.knows_after = row < rows_.size() && rows_.id(row) == query.after_id;
    if (!page.knows_after) return;
    after = {keys[row], static_cast<uint32_t>(row)};
  }
  // The first ones so far, as a heap with the last of them on top; one more tells that there are
  // more.
  std::vector<Place> first;
  for (uint32_t row = 0; row < rows_.size(); ++row) {
    if (!wanted.Has(rows_, row)) continue;
    if (query.with_totals) Add(row, counts);
    const Place place{keys[row], row};
    if (!query.after_id.empty() && !is_before(after, place)) continue;
    if (first.size() > query.limit) {
      if (!is_before(place, first.front())) continue;
      std::pop_heap(first.begin(), first.end(), is_before);
      first.pop_back();
    }
    first.push_back(place);
    std::push_heap(first.begin(), first.end(), is_before);
  }
  std::sort_heap(first.begin(), first.end(), is_before);
  page.has_more = first.size() > query.limit;
  if (page.has_more) first.pop_back();
  for (const Place& place : first) page.ids.emplace_back(rows_.id(place.row));
}

JobIndex::Page JobIndex::Find(const Query& query) {
  const MutexLock lock(mutex_);
  Drain();
  Sort();
  const Wanted wanted = Prepare(query.filter);
  Counts counts;
  for (size_t kind = 0; kind < kKinds; ++kind) {
    counts.texts[kind].resize(kind == kLabels || kind == kNames ? 0 : texts_[kind].size());
  }
  Page page;
  if (query.order == JobOrder::kCreateTime) {
    FindByTime(query, wanted, counts, page);
  } else {
    FindSorted(query, wanted, counts, page);
  }
  if (query.with_totals) page.totals = TotalsOf(counts);
  return page;
}

}  // namespace npuc::jobs
