#include "compiler_core/backends/integer/plan_buffers.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "compiler_core/base/status.h"
#include "compiler_core/memplan/order.h"
#include "compiler_core/memplan/stripes.h"

namespace npuc {
namespace {

class BufferPlanner {
 public:
  BufferPlanner(const CompileOptions& options, const CoreSpec& core, integer::Program& program)
      : options_(options),
        program_(program),
        alignment_bytes_(core.integer->buffer_alignment_bytes),
        // A fixed-point core's header gives both structs memory of their own, as its vendor's does.
        ports_in_data_(!IsFixedPoint(core)),
        core_(core) {}

  absl::StatusOr<MemoryPlanResult> Run(Diagnostics& diagnostics) {
    if (options_.memory_plan == CompileOptions::MemoryPlan::kCompatible) {
      ASSIGN_OR_RETURN(MemoryPlanResult memory, PlanMemory(program_, alignment_bytes_));
      return Checked(std::move(memory), diagnostics);
    }
    if (IsStriped()) ForgetCores(program_);  // stripes overlap; cores share what then still can be
    unplanned_ = program_;
    ASSIGN_OR_RETURN(MemoryPlanResult memory,
                     PlanInBestOrder(program_, alignment_bytes_, ports_in_data_));
    if (limit_bytes() > 0 && program_.data_bytes + PortBytes() > limit_bytes() &&
        ForgetCores(unplanned_)) {
      program_ = unplanned_;
      ASSIGN_OR_RETURN(memory, PlanInBestOrder(program_, alignment_bytes_, ports_in_data_));
    }
    if (options_.optimize == CompileOptions::Optimize::kSize) {
      RETURN_IF_ERROR(PlanStripes(program_, memory));
    }
    return Checked(std::move(memory), diagnostics);
  }

 private:
  bool IsStriped() const { return options_.optimize == CompileOptions::Optimize::kSize; }
  int64_t limit_bytes() const { return options_.sram_limit_bytes.value_or(0); }

  // Lets results lie over rows of operands that cores would share. True where there were any.
  static bool ForgetCores(integer::Program& program) {
    bool had_any = false;
    for (integer::Command& command : program.commands) {
      had_any = had_any || command.sharing.parts > 1;
      command.sharing = {};
    }
    return had_any;
  }

  // The bytes of structs that lie beside data.
  int64_t PortBytes() const {
    const bool beside = program_.input_offset < 0;
    return beside ? program_.buffers[0].size_bytes + program_.buffers[1].size_bytes : 0;
  }

  absl::Status PlanStripes(integer::Program& planned, MemoryPlanResult& memory) const {
    StripeGoal goal;
    goal.alignment_bytes = alignment_bytes_;
    goal.ports_in_data = ports_in_data_;
    if (limit_bytes() > 0) goal.limit_bytes = std::max<int64_t>(limit_bytes() - PortBytes(), 1);
    // The order of the plan's commands, of which none has a place or a direction yet.
    integer::Program ordered = unplanned_;
    ordered.commands = planned.commands;
    for (integer::Command& command : ordered.commands) command.descending = false;
    return PlanInStripes(ordered, core_, goal, planned, memory);
  }

  absl::StatusOr<MemoryPlanResult> Checked(MemoryPlanResult memory, Diagnostics& diagnostics) {
    const int64_t bytes = program_.data_bytes + PortBytes();
    if (limit_bytes() == 0 || bytes <= limit_bytes()) {
      if (limit_bytes() > 0 || memory.stripes.has_value()) SayWhatItCameTo(memory, diagnostics);
      return memory;
    }
    Diagnostic found{.kind = DiagnosticKind::kBeyondSramLimit,
                     .message = absl::StrCat("data_content, struct input and struct output take ",
                                             bytes, " bytes, SRAM_LIMIT is ", limit_bytes()),
                     .file = options_.model_name};
    if (options_.memory_plan == CompileOptions::MemoryPlan::kCompatible) {
      found.fix = absl::StrCat("remove the line MEMORY_PLAN: compatible, or set SRAM_LIMIT to ",
                               bytes, " or more");
    } else {
      RETURN_IF_ERROR(SayWhatStripesNeed(memory, found));
    }
    diagnostics.Add(std::move(found));
    return diagnostics.ToStatus();
  }

  absl::Status SayWhatStripesNeed(const MemoryPlanResult& memory, Diagnostic& found) const {
    integer::Program striped = program_;
    MemoryPlanResult of_stripes = memory;
    if (!IsStriped()) RETURN_IF_ERROR(PlanStripes(striped, of_stripes));
    const int64_t least = striped.data_bytes + PortBytes();
    absl::StrAppend(&found.message,
                    IsStriped() ? " and the least found is " : "; with OPTIMIZE: size ", least,
                    " bytes for ", PriceOf(*of_stripes.stripes),
                    "; no rows of this model can be computed in less than ",
                    RowBound(unplanned_, ports_in_data_) + PortBytes());
    found.fix = least <= limit_bytes()
                    ? "add a line OPTIMIZE: size"
                    : absl::StrCat(IsStriped() ? "" : "add a line OPTIMIZE: size and ",
                                   "set SRAM_LIMIT to ", least, " or more");
    return absl::OkStatus();
  }

  static std::string PriceOf(const StripeReport& report) {
    const double before = static_cast<double>(std::max<int64_t>(report.cycles_before, 1));
    const double percent = 100.0 * static_cast<double>(report.cycles) / before - 100.0;
    return absl::StrFormat("%.1f %% %s estimated cycles", std::fabs(percent),
                           percent < 0 ? "fewer" : "more");
  }

  void SayWhatItCameTo(const MemoryPlanResult& memory, Diagnostics& diagnostics) const {
    Diagnostic note{.kind = DiagnosticKind::kMemoryGoal,
                    .message = absl::StrCat("data_content, struct input and struct output take ",
                                            program_.data_bytes + PortBytes(), " bytes"),
                    .file = options_.model_name};
    if (limit_bytes() > 0) {
      absl::StrAppend(&note.message, "; ", limit_bytes() - program_.data_bytes - PortBytes(),
                      " bytes of SRAM_LIMIT are left");
    }
    if (memory.stripes.has_value()) {
      const StripeReport& report = *memory.stripes;
      if (report.chains.empty()) {
        absl::StrAppend(&note.message, "; OPTIMIZE: size computes no layer in stripes: ",
                        limit_bytes() > 0 ? "none are needed" : "none found needs less");
      }
      for (const StripeReport::Chain& chain : report.chains) {
        absl::StrAppend(&note.message, &chain == &report.chains.front() ? "; " : ", ",
                        chain.commands, " layers up to '", Printable(chain.last_layer), "' in ",
                        chain.stripes, " stripes");
      }
      if (!report.chains.empty()) {
        absl::StrAppend(&note.message, " take ", report.arena_before_bytes - report.arena_bytes,
                        " bytes less for ", PriceOf(report));
      }
    }
    diagnostics.Add(std::move(note));
  }

  const CompileOptions& options_;
  integer::Program& program_;
  const int64_t alignment_bytes_;
  const bool ports_in_data_;
  const CoreSpec& core_;
  integer::Program unplanned_;
};

}  // namespace

absl::StatusOr<MemoryPlanResult> PlanBuffers(const CompileOptions& options, const CoreSpec& core,
                                             integer::Program& program, Diagnostics& diagnostics) {
  return BufferPlanner(options, core, program).Run(diagnostics);
}

}  // namespace npuc
