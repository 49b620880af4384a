//! Bounded ports: what 0-architecture "Bounded ports" promises, and the pitfalls of other actor systems that end at a port.
//!
//! | pitfall                                             | test                                                                    |
//! |-----------------------------------------------------|-------------------------------------------------------------------------|
//! | 4 accepted, then lost at a stop or a crash          | `owners::every_accepted_message_is_accounted_for_after_crashes_and_stops` |
//! | 5 caller hangs on a dead owner                      | `calls::a_final_close_ends_every_queued_call`                           |
//! | 6 self-call, mutual bounded calls                   | `calls::a_call_to_oneself_ends_at_once`, `calls::mutual_calls_end_by_their_deadline` |
//! | 7 small mailbox fills before the start              | `owners::a_start_that_sends_to_itself_and_a_sibling_does_not_deadlock`  |
//! | 9 handle addresses the dead incarnation             | `owners::handles_and_queued_messages_survive_a_crash`                   |
//! | 15 the limit does not bound memory                  | `sending::no_more_messages_are_alive_than_the_bound_allows`             |
//! | 16 refused send kills its sender                    | `owners::a_full_peer_never_ends_its_sender`, and the type (`HandlerError`) |
//! | 18 control messages pile up                         | `sending::control_messages_of_one_kind_are_queued_once`                 |
//! | 19 last handle dropped means stop                   | `owners::dropping_every_handle_ends_nothing`                            |
//! | 21 a second method ignores the bound                | `property::no_public_method_enqueues_past_the_bound`                    |
//! | 22 nobody can tell which mailbox is full            | `sending::a_long_wait_names_both_its_ends`                              |
//! | 23 a push after the close strands a message         | `threads::nothing_is_stranded_by_a_close_amid_sends`, and `checks/port` |
//! | 25 crash loop of one poison message                 | `owners::a_poison_message_is_set_aside_and_its_siblings_are_handled`    |

mod calls;
mod owners;
mod property;
mod sending;
mod support;
mod threads;
