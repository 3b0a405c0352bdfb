#include "compiler_core/quant/adaround.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace npuc {
namespace {

constexpr int kMaxSweeps = 50;
constexpr int kScaleParts = 11;

// G of one group as L L', its rows and columns in the order of the diagonal, smallest first.
class CholeskyFactor {
 public:
  CholeskyFactor(const double* g, int64_t inner) : inner_(inner), order_(inner), l_(inner * inner) {
    std::iota(order_.begin(), order_.end(), 0);
    std::stable_sort(order_.begin(), order_.end(),
                     [&](int64_t a, int64_t b) { return g[a * inner + a] < g[b * inner + b]; });
    for (int64_t i = 0; i < inner; ++i) {
      for (int64_t j = 0; j <= i; ++j) l_[i * inner + j] = g[order_[i] * inner + order_[j]];
    }
    valid_ = Decompose();
  }
  // Whether G is positive definite.
  bool valid() const { return valid_; }

  // The weights without integers that have the least objective: G^-1 target, in order_.
  std::vector<double> Solve(const std::vector<double>& target) const {
    std::vector<double> v(inner_);
    for (int64_t i = 0; i < inner_; ++i) {
      v[i] = target[order_[i]];
      for (int64_t j = 0; j < i; ++j) v[i] -= l_[i * inner_ + j] * v[j];
      v[i] /= l_[i * inner_ + i];
    }
    for (int64_t i = inner_ - 1; i >= 0; --i) {
      v[i] /= l_[i * inner_ + i];
      for (int64_t j = 0; j < i; ++j) v[j] -= l_[i * inner_ + j] * v[i];
    }
    return v;
  }

  // Integers one after the other, the weight of the largest operands first, each to nearest where
  // those before leave the optimum of the rest: Babai's nearest plane, which GPTQ amounts to.
  // best: of Solve.
  std::vector<int64_t> RoundInTurn(const std::vector<double>& best, double scale, int64_t low,
                                   int64_t high) const {
    std::vector<int64_t> q(inner_);
    std::vector<double> shift(inner_, 0.0);  // of the optimum, times the diagonal
    for (int64_t i = inner_ - 1; i >= 0; --i) {
      const double wanted = best[i] - shift[i] / l_[i * inner_ + i];
      const double nearest = std::clamp(std::nearbyint(wanted / scale), static_cast<double>(low),
                                        static_cast<double>(high));
      q[order_[i]] = static_cast<int64_t>(nearest);
      const double error = nearest * scale - best[i];
      for (int64_t j = 0; j < i; ++j) shift[j] += l_[i * inner_ + j] * error;
    }
    return q;
  }

 private:
  // In place, column by column.
  bool Decompose() {
    std::vector<double> column(inner_);
    for (int64_t k = 0; k < inner_; ++k) {
      const double pivot = l_[k * inner_ + k];
      if (!(pivot > 0) || !std::isfinite(pivot)) return false;
      const double root = std::sqrt(pivot);
      l_[k * inner_ + k] = root;
      for (int64_t i = k + 1; i < inner_; ++i) column[i] = l_[i * inner_ + k] /= root;
      for (int64_t i = k + 1; i < inner_; ++i) {
        double* const row = l_.data() + i * inner_;
        for (int64_t j = k + 1; j <= i; ++j) row[j] -= column[i] * column[j];
      }
    }
    return true;
  }

  int64_t inner_;
  std::vector<int64_t> order_;
  std::vector<double> l_;  // lower triangle
  bool valid_ = false;
};

// One result channel: its weights, and what the objective needs of them.
struct Channel {
  const double* own = nullptr;  // G [inner][inner]
  std::vector<double> weights;
  std::vector<double> target;  // C w
  const CholeskyFactor* factor = nullptr;
  std::vector<double> optimum;  // of factor->Solve; empty where G has no factor
};

// Lowers the objective by moving single integers; returns it, less the constant. low, high: of the
// integers. Half of the gradient is kept as integers move.
double Descend(const Channel& channel, double scale, int64_t low, int64_t high,
               std::vector<int64_t>& q) {
  const auto inner = static_cast<int64_t>(channel.weights.size());
  const double* const g = channel.own;
  std::vector<double> gradient(inner);  // G v - C w
  for (int64_t i = 0; i < inner; ++i) gradient[i] = -channel.target[i];
  for (int64_t i = 0; i < inner; ++i) {
    const double v = static_cast<double>(q[i]) * scale;
    if (v == 0) continue;
    for (int64_t j = 0; j < inner; ++j) gradient[j] += v * g[i * inner + j];
  }
  for (int sweep = 0; sweep < kMaxSweeps; ++sweep) {
    bool changed = false;
    for (int64_t i = 0; i < inner; ++i) {
      const double move = gradient[i] > 0 ? -scale : scale;
      const int64_t other = q[i] + (move > 0 ? 1 : -1);
      if (other < low || other > high) continue;
      const double change = 2 * move * gradient[i] + move * move * g[i * inner + i];
      if (!(change < -1e-9 * move * move * g[i * inner + i])) continue;
      q[i] = other;
      changed = true;
      for (int64_t j = 0; j < inner; ++j) gradient[j] += move * g[i * inner + j];
    }
    if (!changed) break;
  }
  double objective = 0;  // v' (G v - 2 C w)
  for (int64_t i = 0; i < inner; ++i) {
    objective += static_cast<double>(q[i]) * scale * (gradient[i] - channel.target[i]);
  }
  return objective;
}

// Of the parts of each channel's scale (of all channels' where they share it) the best.
class Rounder {
 public:
  // parts: of the scale that are tried, kLeastScalePart the last of them.
  Rounder(const ChannelLayout& layout, const OperandMoments& moments,
          const std::vector<float>& weights, int parts, QuantParams& params)
      : layout_(layout), moments_(moments), weights_(weights), parts_(parts), params_(params) {
    const int64_t square = moments.inner * moments.inner;
    for (int64_t group = 0; group < moments.groups; ++group) {
      factors_.emplace_back(moments.own.data() + group * square, moments.inner);
    }
  }

  std::vector<float> Round() {
    std::vector<float> rounded(weights_.size());
    if (params_.axis >= 0) {
      for (int64_t o = 0; o < layout_.channels; ++o) Settle(o, o + 1, o, rounded);
    } else {
      Settle(0, layout_.channels, 0, rounded);
    }
    return rounded;
  }

  // By how much each channel's mean with `rounded` is below that of the float model.
  std::vector<double> MeanErrors(const std::vector<float>& rounded) const {
    std::vector<double> errors(layout_.channels, 0.0);
    for (int64_t o = 0; o < layout_.channels; ++o) {
      const int64_t from = GroupOf(o) * layout_.inner;
      for (int64_t k = 0; k < layout_.inner; ++k) {
        const int64_t at = k * layout_.step + o * layout_.stride;
        errors[o] += weights_[at] * moments_.float_mean[from + k];
        errors[o] -= rounded[at] * moments_.own_mean[from + k];
      }
    }
    return errors;
  }

 private:
  // The channels [first, last), which have scale number `index`.
  void Settle(int64_t first, int64_t last, int64_t index, std::vector<float>& rounded) {
    const double widest = params_.scale[index];
    double least = HUGE_VAL;
    std::vector<std::vector<int64_t>> best;
    std::vector<Channel> channels;
    for (int64_t o = first; o < last; ++o) channels.push_back(ChannelOf(o));
    for (int part = 0; part < parts_; ++part) {
      const double scale = widest * (1 - (1 - kLeastScalePart) * part / (parts_ - 1));
      std::vector<std::vector<int64_t>> found(channels.size());
      double objective = 0;
      for (size_t c = 0; c < channels.size(); ++c) {
        objective += BestOf(channels[c], scale, found[c]);
      }
      if (!best.empty() && !(objective < least)) continue;
      least = objective;
      best = std::move(found);
      params_.scale[index] = scale;
    }
    for (int64_t o = first; o < last; ++o) {
      for (int64_t k = 0; k < layout_.inner; ++k) {
        rounded[k * layout_.step + o * layout_.stride] =
            static_cast<float>(static_cast<double>(best[o - first][k]) * params_.scale[index]);
      }
    }
  }

  // From integers rounded to nearest, and from those rounded in turn.
  double BestOf(const Channel& channel, double scale, std::vector<int64_t>& q) const {
    q.resize(layout_.inner);
    for (int64_t k = 0; k < layout_.inner; ++k) {
      q[k] = static_cast<int64_t>(std::clamp(std::nearbyint(channel.weights[k] / scale),
                                             static_cast<double>(params_.qmin),
                                             static_cast<double>(params_.qmax)));
    }
    const double from_nearest = Descend(channel, scale, params_.qmin, params_.qmax, q);
    if (channel.optimum.empty()) return from_nearest;
    std::vector<int64_t> other =
        channel.factor->RoundInTurn(channel.optimum, scale, params_.qmin, params_.qmax);
    const double in_turn = Descend(channel, scale, params_.qmin, params_.qmax, other);
    if (!(in_turn < from_nearest)) return from_nearest;
    q = std::move(other);
    return in_turn;
  }

  int64_t GroupOf(int64_t o) const { return moments_.groups == 1 ? 0 : o; }

  Channel ChannelOf(int64_t o) const {
    const int64_t inner = layout_.inner;
    const int64_t group = GroupOf(o);
    Channel channel;
    channel.own = moments_.own.data() + group * inner * inner;
    channel.weights.resize(inner);
    channel.target.assign(inner, 0.0);
    for (int64_t k = 0; k < inner; ++k) {
      channel.weights[k] = weights_[k * layout_.step + o * layout_.stride];
    }
    const double* cross = moments_.cross.data() + group * inner * inner;
    for (int64_t i = 0; i < inner; ++i, cross += inner) {
      for (int64_t j = 0; j < inner; ++j) channel.target[i] += cross[j] * channel.weights[j];
    }
    channel.factor = &factors_[group];
    if (channel.factor->valid()) channel.optimum = channel.factor->Solve(channel.target);
    return channel;
  }

  const ChannelLayout& layout_;
  const OperandMoments& moments_;
  const std::vector<float>& weights_;
  int parts_;
  QuantParams& params_;
  std::vector<CholeskyFactor> factors_;  // by group
};

}  // namespace

AdaptiveRounding RoundAdaptively(const QuantState& state, int layer, const Tensor& weight,
                                 const OperandMoments& moments, QuantParams& params) {
  const ChannelLayout layout = LayoutOf(state, layer);
  const std::vector<float> values = weight.ToFloats();
  // A power of two stays one.
  const int parts = state.fixed_point ? 2 : kScaleParts;
  Rounder rounder(layout, moments, values, parts, params);
  const std::vector<float> rounded = rounder.Round();
  return {QuantizeTensor(params, rounded, weight.shape()),
          moments.centred ? rounder.MeanErrors(rounded) : std::vector<double>()};
}

}  // namespace npuc
