//! What users of actor libraries run into, and the test that keeps each away from ours.
//!
//! | # | pitfall | kept away by |
//! |---|---------|--------------|
//! | 1 | an actor that ends kills its children without a chance to stop | supervision |
//! | 2 | a kill is reported like a normal end | supervision |
//! | 3 | a second request to stop returns before the stop | supervision |
//! | 4 | an accepted message is dropped in silence at a stop or a crash | ports |
//! | 5 | a caller hangs, since its reply lies in a dead actor's queue | ports |
//! | 6 | calls to oneself, or in a circle, deadlock | ports |
//! | 7 | a small queue that fills before its actor has started deadlocks the start | ports |
//! | 8 | specifications and arguments of children that ended for good pile up | supervision |
//! | 9 | a handle from before a restart acts on the dead incarnation | supervision, ports |
//! | 10 | a permanent child that was stopped on purpose comes back | supervision |
//! | 11 | a name stays taken after a failed start or a stop | supervision |
//! | 12 | timers outlive their incarnation, or tick twice after a restart | supervision |
//! | 13 | a delayed restart hits a child that is healthy by now | supervision |
//! | 14 | a broadcast loses messages in silence | reports, ports |
//! | 15 | a limit that does not bound memory | ports |
//! | 16 | a full receiver takes its sender down | ports |
//! | 17 | siblings spend one restart budget | supervision |
//! | 18 | control messages pile up behind a handler that hangs | ports |
//! | 19 | dropping the last handle stops an actor that was needed | supervision, ports |
//! | 20 | a death that must be seen is swallowed | supervision |
//! | 21 | a second way to send ignores the bound | ports |
//! | 22 | one full queue stops the system, and nobody can tell which | ports |
//! | 23 | a message that comes after the close is stranded | ports |
//! | 24 | features of the actor library, turned on by others, break the build | no test |
//! | 25 | one poisonous message crashes its actor for ever | ports |

use std::fs;
use std::path::Path;

/// How a pitfall is kept away.
enum Guard {
    /// By these tests.
    Tests(&'static [&'static str]),
    /// Without a test, for this reason.
    None(&'static str),
}

struct Pitfall {
    number: u8,
    what: &'static str,
    guard: Guard,
}

const fn tested(number: u8, what: &'static str, tests: &'static [&'static str]) -> Pitfall {
    Pitfall { number, what, guard: Guard::Tests(tests) }
}

const PITFALLS: [Pitfall; 25] = [
    tested(
        1,
        "an actor that ends kills its children without a chance to stop",
        &["every_orderly_end_stops_the_children_in_reverse"],
    ),
    tested(2, "a kill is reported like a normal end", &["a_killed_transient_child_is_restarted", "a_killed_subtree_comes_back"]),
    tested(3, "a second request to stop returns before the stop", &["every_shutdown_returns_after_the_last_task"]),
    tested(
        4,
        "an accepted message is dropped in silence at a stop or a crash",
        &["every_accepted_message_is_accounted_for_after_crashes_and_stops"],
    ),
    tested(5, "a caller hangs, since its reply lies in a dead actor's queue", &["a_final_close_ends_every_queued_call"]),
    tested(
        6,
        "calls to oneself, or in a circle, deadlock",
        &["a_call_to_oneself_ends_at_once", "mutual_calls_end_by_their_deadline"],
    ),
    tested(
        7,
        "a small queue that fills before its actor has started deadlocks the start",
        &["a_start_that_sends_to_itself_and_a_sibling_does_not_deadlock"],
    ),
    tested(
        8,
        "specifications and arguments of children that ended for good pile up",
        &["a_hundred_thousand_dynamic_children_leave_nothing_behind"],
    ),
    tested(
        9,
        "a handle from before a restart acts on the dead incarnation",
        &[
            "a_handle_taken_before_a_crash_acts_on_what_runs_after_it",
            "requests_wait_over_a_restart_of_the_supervisor",
            "handles_and_queued_messages_survive_a_crash",
        ],
    ),
    tested(
        10,
        "a permanent child that was stopped on purpose comes back",
        &["an_explicit_stop_is_final", "the_shutdown_of_a_subtree_is_final"],
    ),
    tested(11, "a name stays taken after a failed start or a stop", &["a_thousand_trees_touch_no_global_name"]),
    tested(12, "timers outlive their incarnation, or tick twice after a restart", &["a_hundred_restarts_leave_one_ticker"]),
    tested(13, "a delayed restart hits a child that is healthy by now", &["a_stale_back_off_timer_leaves_a_healthy_child_alone"]),
    tested(14, "a broadcast loses messages in silence", &["a_watcher_that_does_not_read_loses_counted_reports"]),
    tested(15, "a limit that does not bound memory", &["no_more_messages_are_alive_than_the_bound_allows"]),
    tested(16, "a full receiver takes its sender down", &["a_full_peer_never_ends_its_sender"]),
    tested(17, "siblings spend one restart budget", &["siblings_do_not_spend_one_anothers_budget"]),
    tested(18, "control messages pile up behind a handler that hangs", &["control_messages_of_one_kind_are_queued_once"]),
    tested(
        19,
        "dropping the last handle stops an actor that was needed",
        &["dropping_the_handles_stops_nothing", "dropping_every_handle_ends_nothing"],
    ),
    tested(
        20,
        "a death that must be seen is swallowed",
        &["a_start_that_fails_on_a_restart_is_counted_backed_off_and_escalated", "a_child_that_ends_at_once_is_not_missed"],
    ),
    tested(21, "a second way to send ignores the bound", &["no_public_method_enqueues_past_the_bound"]),
    tested(22, "one full queue stops the system, and nobody can tell which", &["a_long_wait_names_both_its_ends"]),
    tested(23, "a message that comes after the close is stranded", &["nothing_is_stranded_by_a_close_amid_sends"]),
    Pitfall {
        number: 24,
        what: "features of the actor library, turned on by others, break the build",
        guard: Guard::None("a matter of compiling: `.ci/run` checks the package under each set of the library's features"),
    },
    tested(
        25,
        "one poisonous message crashes its actor for ever",
        &["a_poison_message_is_set_aside_and_its_siblings_are_handled"],
    ),
];

/// Each row names tests that exist, or says why it has none; at most three have none.
#[test]
fn every_pitfall_names_its_tests() {
    let sources = sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it"));
    assert!(PITFALLS.iter().map(|pitfall| pitfall.number).eq(1..=25));
    let mut without_test = 0;
    for Pitfall { number, what, guard } in &PITFALLS {
        match guard {
            Guard::Tests(tests) => {
                assert!(!tests.is_empty(), "{number}: {what}");
                for test in *tests {
                    assert!(is_test(&sources, test), "{number}: there is no test {test}");
                }
            }
            Guard::None(reason) => {
                without_test += 1;
                assert!(!reason.is_empty(), "{number}: {what}");
            }
        }
    }
    assert!(without_test <= 3);
}

/// The check itself can fail.
#[test]
fn a_name_that_is_no_test_is_found_out() {
    let source = "#[tokio::test(start_paused = true)]\nasync fn one() {}\n#[test]\nfn two() {}\n\
                  fn three() {}\n// #[test]\n// fn four() {}";
    assert!(is_test(source, "one") && is_test(source, "two"));
    assert!(!is_test(source, "three") && !is_test(source, "four") && !is_test(source, "tw"));
}

fn is_test(source: &str, name: &str) -> bool {
    let lines: Vec<&str> = source.lines().map(str::trim).collect();
    let heads = [format!("fn {name}("), format!("async fn {name}(")];
    lines.windows(2).any(|pair| {
        (pair[0].starts_with("#[test]") || pair[0].starts_with("#[tokio::test"))
            && heads.iter().any(|head| pair[1].starts_with(head))
    })
}

fn sources(folder: &Path) -> String {
    let mut text = String::new();
    for entry in fs::read_dir(folder).expect("the folder of the tests is there") {
        let path = entry.expect("its entries can be listed").path();
        if path.is_dir() {
            text += &sources(&path);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            text += &fs::read_to_string(&path).expect("a source is a text");
        }
    }
    text
}
