#include "server/jobs/job_index.h"

#include <algorithm>
#include <functional>
#include <limits>

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

  bool Has(const Row& row) const {
    if (!states[static_cast<size_t>(row.state)]) return false;
    if (row.create_micros < from_micros || row.create_micros >= before_micros) return false;
    for (size_t kind = 0; kind < kKinds; ++kind) {
      if (!texts[kind].empty() && texts[kind][row.texts[kind]] == 0) return false;
    }
    return !hits.has_value() || HasText(row);
  }

 private:
  bool HasText(const Row& row) const {
    for (size_t kind = 0; kind < kKinds; ++kind) {
      if (!(*hits)[kind].empty() && (*hits)[kind][row.texts[kind]] != 0) return true;
    }
    return absl::StartsWithIgnoreCase(row.id_view(), id_begin) ||
           (!md5_begin.empty() && BeginsWith(row.md5, md5_begin));
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
    keys_.emplace_back();
  } else {
    index = free_.back();
    free_.pop_back();
  }
  all_[index] = make();
  all_[index].uses = 1;
  keys_[index] = key;
  by_key_.emplace(key, index);
  return index;
}

void JobIndex::Texts::Drop(uint32_t index) {
  if (--all_[index].uses > 0) return;
  by_key_.erase(keys_[index]);
  keys_[index] = std::string();
  all_[index] = Text();
  free_.push_back(index);
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

void JobIndex::Drain() {
  std::vector<Job> pending;
  {
    const MutexLock lock(pending_mutex_);
    pending.swap(pending_);
  }
  for (const Job& job : pending) Insert(job);
}

std::deque<JobIndex::Row>::iterator JobIndex::LowerBound(absl::string_view id) {
  return std::lower_bound(
      rows_.begin(), rows_.end(), id,
      [](const Row& row, absl::string_view wanted) { return row.id_view() < wanted; });
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
        std::sort(text.hashes.begin(), text.hashes.end());
        return text;
      });
  row.name_begin = BeginOf(texts_[kNames].all()[row.texts[kNames]].text);
  row.revision = job.revision;
  row.create_micros = absl::ToUnixMicros(job.create_time);
  if (job.end_time != absl::InfinitePast()) row.end_micros = absl::ToUnixMicros(job.end_time);
  row.md5 = Md5Bytes(job.model().md5);
  return row;
}

void JobIndex::DropTexts(const Row& row) {
  for (size_t kind = 0; kind < kKinds; ++kind) texts_[kind].Drop(row.texts[kind]);
}

void JobIndex::Insert(const Job& job) {
  if (job.id.size() != kIdBytes) return;
  const auto place = LowerBound(job.id);
  if (place == rows_.end() || place->id_view() != job.id) {
    rows_.insert(place, MakeRow(job));
    return;
  }
  if (place->revision >= job.revision) return;
  const Row old = *place;
  *place = MakeRow(job);
  DropTexts(old);
}

void JobIndex::DropEnded(absl::Time before, size_t count) {
  const MutexLock lock(mutex_);
  Drain();
  const int64_t end = absl::ToUnixMicros(before);
  std::vector<std::pair<int64_t, std::string>> ended;
  for (const Row& row : rows_) {
    if (row.end_micros != 0 && row.end_micros < end) {
      ended.emplace_back(row.end_micros, std::string(row.id_view()));
    }
  }
  if (ended.size() > count) {
    std::nth_element(ended.begin(), ended.begin() + static_cast<ptrdiff_t>(count), ended.end());
    ended.resize(count);
  }
  std::sort(ended.begin(), ended.end(),
            [](const auto& a, const auto& b) { return a.second < b.second; });
  std::erase_if(rows_, [&](const Row& row) NPUC_REQUIRES(mutex_) {
    const bool is_gone = std::binary_search(
        ended.begin(), ended.end(), std::pair(int64_t{0}, std::string(row.id_view())),
        [](const auto& a, const auto& b) { return a.second < b.second; });
    if (is_gone) DropTexts(row);
    return is_gone;
  });
}

size_t JobIndex::size() {
  const MutexLock lock(mutex_);
  Drain();
  return rows_.size();
}

JobIndex::Wanted JobIndex::Prepare(const JobFilter& filter) const {
  Wanted wanted;
  if (filter.states.empty()) wanted.states.fill(true);
  for (const JobState state : filter.states) wanted.states[static_cast<size_t>(state)] = true;
  const auto select = [](const Texts& texts, const std::function<bool(const Text&)>& has) {
    std::vector<char> found(texts.all().size(), 0);
    for (size_t i = 0; i < found.size(); ++i) found[i] = has(texts.all()[i]) ? 1 : 0;
    return found;
  };
  const auto among = [&](Kind kind, const std::vector<std::string>& names) NPUC_REQUIRES(mutex_) {
    if (names.empty()) return;
    wanted.texts[kind] = select(texts_[kind], [&](const Text& text) {
      return std::find(names.begin(), names.end(), text.shown) != names.end();
    });
  };
  among(kCores, filter.cores);
  among(kFrameworks, filter.frameworks);
  if (!filter.submitter.empty()) among(kSubmitters, {filter.submitter});
  wanted.texts[kTenants] = select(texts_[kTenants], [&](const Text& text) {
    const auto& names = filter.tenants;
    return filter.only_tenant.value_or(text.shown) == text.shown &&
           (filter.hidden_tenant.empty() || text.shown != filter.hidden_tenant) &&
           (names.empty() || std::find(names.begin(), names.end(), text.shown) != names.end());
  });
  if (!filter.labels.empty()) {
    std::vector<uint64_t> hashes;
    for (const auto& [key, value] : filter.labels) {
      hashes.push_back(HashOf(key, value.value_or(""), value.has_value()));
    }
    wanted.texts[kLabels] = select(texts_[kLabels], [&](const Text& text) {
      return std::all_of(hashes.begin(), hashes.end(), [&](uint64_t hash) {
        return std::binary_search(text.hashes.begin(), text.hashes.end(), hash);
      });
    });
  }
  wanted.from_micros = filter.created_from == absl::InfinitePast()
                           ? std::numeric_limits<int64_t>::min()
                           : absl::ToUnixMicros(filter.created_from);
  wanted.before_micros = absl::ToUnixMicros(filter.created_before);
  if (filter.text.empty()) return wanted;
  const std::string lower = absl::AsciiStrToLower(filter.text);
  wanted.hits.emplace();
  for (const Kind kind : {kTenants, kNames, kLabels, kSubmitters}) {
    (*wanted.hits)[kind] =
        select(texts_[kind], [&](const Text& text) { return absl::StrContains(text.text, lower); });
  }
  wanted.id_begin = lower;
  if (lower.size() <= 32 &&
      std::all_of(lower.begin(), lower.end(), [](char c) { return Nibble(c) >= 0; })) {
    wanted.md5_begin = lower;
  }
  return wanted;
}

void JobIndex::Add(const Row& row, Counts& counts) const {
  ++counts.jobs;
  ++counts.states[static_cast<size_t>(row.state)];
  for (const Kind kind : {kTenants, kCores, kFrameworks}) ++counts.texts[kind][row.texts[kind]];
}

JobTotals JobIndex::TotalsOf(const Counts& counts) const {
  JobTotals totals{.jobs = counts.jobs};
  for (size_t i = 0; i < counts.states.size(); ++i) {
    if (counts.states[i] > 0) totals.states[static_cast<JobState>(i)] = counts.states[i];
  }
  const auto name = [&](Kind kind, std::map<std::string, int64_t>& to, size_t most)
                        NPUC_REQUIRES(mutex_) {
                          std::vector<std::pair<int64_t, std::string>> found;
                          for (size_t i = 0; i < counts.texts[kind].size(); ++i) {
                            const std::string& shown = texts_[kind].all()[i].shown;
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
    const Row& row = rows_[query.reverse ? i : count - 1 - i];
    if (!wanted.Has(row)) continue;
    if (query.with_totals) Add(row, counts);
    if (page.has_more) continue;
    const bool is_behind =
        query.after_id.empty() ||
        (query.reverse ? row.id_view() > query.after_id : row.id_view() < query.after_id);
    if (!is_behind) continue;
    if (page.ids.size() < query.limit) {
      page.ids.emplace_back(row.id_view());
      continue;
    }
    page.has_more = true;
    if (!query.with_totals) return;
  }
}

std::vector<uint64_t> JobIndex::RanksOf(JobOrder order) const {
  const Kind kind = order == JobOrder::kTenant      ? kTenants
                    : order == JobOrder::kFramework ? kFrameworks
                                                    : kCores;
  std::vector<uint32_t> sorted(texts_[kind].all().size());
  for (uint32_t i = 0; i < sorted.size(); ++i) sorted[i] = i;
  std::sort(sorted.begin(), sorted.end(), [&](uint32_t a, uint32_t b) NPUC_REQUIRES(mutex_) {
    return texts_[kind].all()[a].text < texts_[kind].all()[b].text;
  });
  std::vector<uint64_t> ranks(sorted.size());
  for (size_t i = 0; i < sorted.size(); ++i) ranks[sorted[i]] = i;
  return ranks;
}

uint64_t JobIndex::KeyOf(JobOrder order, const std::vector<uint64_t>& ranks, const Row& row) const {
  const bool has_ended = row.end_micros != 0;
  switch (order) {
    case JobOrder::kCreateTime:
      return kLast - static_cast<uint64_t>(row.create_micros);
    case JobOrder::kEndTime:
      return has_ended ? kLast - static_cast<uint64_t>(row.end_micros) : 0;
    case JobOrder::kTook:
      return has_ended ? kLast - 1 -
                             static_cast<uint64_t>(
                                 std::max<int64_t>(0, row.end_micros - row.create_micros))
                       : kLast;
    case JobOrder::kName:
      return row.name_begin;
    case JobOrder::kState:
      return static_cast<uint64_t>(row.state);
    case JobOrder::kCore:
      return ranks[row.texts[kCores]];
    case JobOrder::kFramework:
      return ranks[row.texts[kFrameworks]];
    case JobOrder::kTenant:
      return ranks[row.texts[kTenants]];
  }
  return 0;
}

void JobIndex::FindSorted(const Query& query, const Wanted& wanted, Counts& counts, Page& page) {
  const std::vector<uint64_t> ranks = RanksOf(query.order);
  const auto name = [&](const Place& place) NPUC_REQUIRES(mutex_) -> const std::string& {
    return texts_[kNames].all()[rows_[place.row].texts[kNames]].text;
  };
  const bool by_name = query.order == JobOrder::kName;
  const auto is_before = [&](const Place& a, const Place& b) NPUC_REQUIRES(mutex_) {
    if (a.key != b.key) return (a.key < b.key) != query.reverse;
    if (by_name && rows_[a.row].texts[kNames] != rows_[b.row].texts[kNames]) {
      const int order = name(a).compare(name(b));
      if (order != 0) return (order < 0) != query.reverse;
    }
    return a.row > b.row;
  };
  Place after;
  if (!query.after_id.empty()) {
    const auto row = LowerBound(query.after_id);
    page.knows_after = row != rows_.end() && row->id_view() == query.after_id;
    if (!page.knows_after) return;
    after = {KeyOf(query.order, ranks, *row), static_cast<uint32_t>(row - rows_.begin())};
  }
  std::vector<Place> places;
  for (uint32_t i = 0; i < rows_.size(); ++i) {
    if (!wanted.Has(rows_[i])) continue;
    if (query.with_totals) Add(rows_[i], counts);
    const Place place{KeyOf(query.order, ranks, rows_[i]), i};
    if (query.after_id.empty() || is_before(after, place)) places.push_back(place);
  }
  page.has_more = places.size() > query.limit;
  const size_t shown = std::min(places.size(), query.limit);
  std::partial_sort(places.begin(), places.begin() + static_cast<ptrdiff_t>(shown), places.end(),
                    is_before);
  for (size_t i = 0; i < shown; ++i) page.ids.emplace_back(rows_[places[i].row].id_view());
}

JobIndex::Page JobIndex::Find(const Query& query) {
  const MutexLock lock(mutex_);
  Drain();
  const Wanted wanted = Prepare(query.filter);
  Counts counts;
  for (size_t kind = 0; kind < kKinds; ++kind) {
    counts.texts[kind].resize(kind == kLabels || kind == kNames ? 0 : texts_[kind].all().size());
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
