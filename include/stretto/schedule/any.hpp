#pragma once

#include <concepts>
#include <memory>
#include <string_view>

#include "stretto/schedule/concept.hpp"
#include "stretto/schedule/variants.hpp"

namespace stretto::schedule {

//! A schedule of whatever type, with its options: for programs that learn only when they run which
//! one it is, and for code that is to be compiled once for all. Itself a schedule; it does what the
//! one in it does. Copies share that one, which nothing changes.
class any {
 public:
  std::string_view name;  //!< of the one in it
  bool forward_only;      //!< the same

  template <class Schedule>
    requires(!std::same_as<Schedule, any> && Policy<Schedule>)
  any(const Schedule& made)
      : forward_only(schedule::forward_only(made)) {
    const auto kept = std::make_shared<const holder<Schedule>>(made);
    name = kept->made.name;  // of the copy, which lives as long
    held_ = kept;
  }
  any(const any&) = default;  // and no moves: none is ever empty
  any& operator=(const any&) = default;

  placement_kind placed() const { return held_->placed(); }
  verdict supports(const shape& sizes) const { return held_->supports(sizes); }
  int capacity(const shape& sizes) const { return held_->capacity(sizes); }
  verdict emit(const shape& sizes, const job_table_view& table, job_sink& out) const {
    return held_->emit(sizes, table, out);
  }
  //! Of one that may choose: how many orders it has (see orders_of); 0 of any other schedule.
  int orders() const { return held_->orders(); }
  bool one_variant() const { return held_->one_variant(); }  //!< see is_one_variant
  //! How good one of them is, and its lists, where there is `out`.
  variant_score score(const shape& sizes, const job_table_view& table, int tried,
                      job_sink* out = nullptr) const {
    return held_->score(sizes, table, tried, out);
  }
  //! What they are scored by.
  objective_kind aim() const { return held_->aim(); }

 private:
  struct one {
    virtual ~one() = default;
    virtual placement_kind placed() const = 0;
    virtual verdict supports(const shape& sizes) const = 0;
    virtual int capacity(const shape& sizes) const = 0;
    virtual verdict emit(const shape& sizes, const job_table_view& table, job_sink& out) const = 0;
    virtual int orders() const = 0;
    virtual bool one_variant() const = 0;
    virtual variant_score score(const shape& sizes, const job_table_view& table, int tried,
                                job_sink* out) const = 0;
    virtual objective_kind aim() const = 0;
  };
  template <class Schedule>
  struct holder final : one {
    Schedule made;

    explicit holder(const Schedule& given) : made(given) {}
    placement_kind placed() const override { return made.placed(); }
    verdict supports(const shape& sizes) const override { return made.supports(sizes); }
    int capacity(const shape& sizes) const override { return made.capacity(sizes); }
    verdict emit(const shape& sizes, const job_table_view& table, job_sink& out) const override {
      return made.emit(sizes, table, out);
    }
    int orders() const override { return orders_of(made); }
    bool one_variant() const override { return is_one_variant(made); }
    variant_score score(const shape& sizes, const job_table_view& table, int tried,
                        job_sink* out) const override {
      if constexpr (requires { made.score(sizes, table, tried, out); })
        return made.score(sizes, table, tried, out);
      return {};
    }
    objective_kind aim() const override { return aim_of(made); }
  };

  std::shared_ptr<const one> held_;
};

}  // namespace stretto::schedule
