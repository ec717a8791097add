#pragma once

#include <type_traits>

namespace stretto::detail {

//! The members that policies may have or not have, by name.
struct optional_members {
  int layer, layer_bytes, recompute, offload;  // memory
  int receive_lead;                            // overlap
  int leaves_empty;                            // assignment
  int forward_only;                            // schedule
};

// Here a name that a policy has, too, is ambiguous: whatever the member is, and whoever may use it.
template <class Policy>
struct with_optional_members : Policy, optional_members {};

//! Whether it can be asked; of a final class nobody can derive.
template <class Policy>
inline constexpr bool is_open = std::is_class_v<Policy> && !std::is_final_v<Policy>;

//! Whether a policy has a member of that name, be it private, or of other parameters than whoever
//! asks for it gives: nobody would hear of it.
template <class Policy>
concept names_layer = is_open<Policy> && !requires { &with_optional_members<Policy>::layer; };
template <class Policy>
concept names_layer_bytes =
    is_open<Policy> && !requires { &with_optional_members<Policy>::layer_bytes; };
template <class Policy>
concept names_recompute =
    is_open<Policy> && !requires { &with_optional_members<Policy>::recompute; };
template <class Policy>
concept names_offload = is_open<Policy> && !requires { &with_optional_members<Policy>::offload; };
template <class Policy>
concept names_receive_lead =
    is_open<Policy> && !requires { &with_optional_members<Policy>::receive_lead; };
template <class Policy>
concept names_leaves_empty =
    is_open<Policy> && !requires { &with_optional_members<Policy>::leaves_empty; };
template <class Policy>
concept names_forward_only =
    is_open<Policy> && !requires { &with_optional_members<Policy>::forward_only; };

}  // namespace stretto::detail
