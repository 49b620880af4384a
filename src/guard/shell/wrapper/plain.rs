//! Wrappers whose child is the words from the first operand on, or from one of the next. One table.
//!
//! | in an entry     | means                                                                              |
//! |-----------------|------------------------------------------------------------------------------------|
//! | `names`         | the programs that it is for                                                        |
//! | the grammar     | the options in getopt's notation; one that is missing stops the reading            |
//! | `operands`      | how many operands stand before the child                                           |
//! | `inert`         | options with which no word is run                                                  |
//! | `folder`        | options that say where the child runs                                              |
//! | `assigns`       | options with `NAME=VALUE` for the child                                            |
//! | `texts`         | options whose value is run by a shell, if it begins so                             |
//! | `place`         | where the child runs if no option says it                                          |
//! | `moves`         | options after which it runs in another tree of files                               |
//! | `shell`         | without a child, a shell that reads the input                                      |

use super::options::{Call, Grammar, assignment, tail};
use super::{Child, Folder, Found};

/// A wrapper with a plain grammar.
pub(super) struct Wrapper {
    names: &'static [&'static str],
    grammar: Grammar,
    operands: usize,
    inert: &'static [&'static str],
    folder: &'static [&'static str],
    assigns: &'static [&'static str],
    texts: Option<(&'static [&'static str], &'static [char])>,
    place: Place,
    moves: &'static [&'static str],
    shell: bool,
}

/// [`Folder`] without one that is named.
#[derive(Clone, Copy)]
enum Place {
    Same,
    Unknown,
    Elsewhere,
}

/// The entry of a program.
pub(super) fn wrapper(name: &str) -> Option<&'static Wrapper> {
    WRAPPERS.iter().find(|wrapper| wrapper.names.contains(&name))
}

/// Every program of the table.
#[cfg(test)]
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    WRAPPERS.iter().flat_map(|wrapper| wrapper.names.iter().copied())
}

/// What a call of a plain wrapper runs.
pub(super) fn run(call: &mut Call<'_>, wrapper: &Wrapper) -> Found {
    let options = call.leading(&wrapper.grammar, 1)?;
    if options.has(wrapper.inert) {
        return Ok(Vec::new().into());
    }
    let mut list = Vec::new();
    if let Some((names, marks)) = wrapper.texts {
        let texts = options.values(names).filter(|value| value.text.starts_with(marks));
        list.extend(texts.map(|value| Child::text(tail(value, 1))));
    }
    let child = options.rest + wrapper.operands;
    (options.rest..child).for_each(|at| call.operand(at));
    let place = match options.value(wrapper.folder) {
        _ if options.has(wrapper.moves) => Folder::Elsewhere,
        Some(folder) => Folder::Known(folder.clone()),
        None => match wrapper.place {
            Place::Same => Folder::Same,
            Place::Unknown => Folder::Unknown,
            Place::Elsewhere => Folder::Elsewhere,
        },
    };
    match Child::command(call.rest(child)) {
        Some(mut child) => {
            if let Child::Command { assignments, .. } = &mut child {
                assignments.extend(options.values(wrapper.assigns).filter_map(assignment));
            }
            list.push(child.within(&place));
        }
        None if wrapper.shell => list.push(Child::input().within(&place)),
        None => {}
    }
    Ok(list.into())
}

impl Wrapper {
    const fn new(names: &'static [&'static str], short: &'static str, long: &'static [&'static str]) -> Self {
        Self {
            names,
            grammar: Grammar::new(short, long),
            operands: 0,
            inert: &[],
            folder: &[],
            assigns: &[],
            texts: None,
            place: Place::Same,
            moves: &[],
            shell: false,
        }
    }

    const fn numbers(mut self) -> Self {
        self.grammar = self.grammar.numbers();
        self
    }

    const fn operands(mut self, operands: usize) -> Self {
        self.operands = operands;
        self
    }

    const fn inert(mut self, options: &'static [&'static str]) -> Self {
        self.inert = options;
        self
    }

    const fn folder(mut self, options: &'static [&'static str]) -> Self {
        self.folder = options;
        self
    }

    const fn assigns(mut self, options: &'static [&'static str]) -> Self {
        self.assigns = options;
        self
    }

    const fn texts(mut self, options: &'static [&'static str], marks: &'static [char]) -> Self {
        self.texts = Some((options, marks));
        self
    }

    const fn unknown_place(mut self) -> Self {
        self.place = Place::Unknown;
        self
    }

    const fn elsewhere(mut self) -> Self {
        self.place = Place::Elsewhere;
        self
    }

    const fn moves(mut self, options: &'static [&'static str]) -> Self {
        self.moves = options;
        self
    }

    const fn or_shell(mut self) -> Self {
        self.shell = true;
        self
    }
}

const WRAPPERS: &[Wrapper] = &[
    Wrapper::new(&["nohup"], "", &["help", "version"]),
    Wrapper::new(&["setsid"], "cfwhV", &["ctty", "fork", "wait", "help", "version"]),
    Wrapper::new(&["nice"], "n:", &["adjustment:", "help", "version"]).numbers(),
    Wrapper::new(&["ionice"], "c:n:p:P:tu:hV", &["class:", "classdata:", "pid:", "pgid:", "ignore", "uid:", "help", "version"])
        .inert(&["p", "P", "u", "pid", "pgid", "uid"]),
    Wrapper::new(
        &["timeout"],
        "fpk:s:v",
        &["foreground", "preserve-status", "kill-after:", "signal:", "verbose", "help", "version"],
    )
    .operands(1),
    Wrapper::new(&["stdbuf"], "i:o:e:", &["input:", "output:", "error:", "help", "version"]),
    // `-l` and `-h` of the BSDs.
    Wrapper::new(
        &["time"],
        "af:o:pqvVlh",
        &["append", "format:", "output:", "portability", "quiet", "verbose", "help", "version"],
    ),
    Wrapper::new(
        &["chrt"],
        "abdefiormpRvhVGT:P:D:",
        &[
            "all-tasks",
            "batch",
            "deadline",
            "ext",
            "fifo",
            "idle",
            "other",
            "rr",
            "reclaim",
            "reset-on-fork",
            "sched-runtime:",
            "sched-period:",
            "sched-deadline:",
            "max",
            "pid",
            "verbose",
            "help",
            "version",
        ],
    )
    .operands(1)
    .inert(&["m", "p", "max", "pid"]),
    Wrapper::new(&["taskset"], "apchV", &["all-tasks", "pid", "cpu-list", "help", "version"]).operands(1).inert(&["p", "pid"]),
    Wrapper::new(
        &["prlimit"],
        "p:o:c::d::e::f::i::l::m::n::q::r::s::t::u::v::x::y::hV",
        &[
            "pid:",
            "output:",
            "noheadings",
            "raw",
            "verbose",
            "as::",
            "core::",
            "cpu::",
            "data::",
            "fsize::",
            "locks::",
            "memlock::",
            "msgqueue::",
            "nice::",
            "nofile::",
            "nproc::",
            "rss::",
            "rtprio::",
            "rttime::",
            "sigpending::",
            "stack::",
            "help",
            "version",
        ],
    )
    .inert(&["p", "pid"]),
    Wrapper::new(
        &["setpriv"],
        "dhV",
        &[
            "dump",
            "nnp",
            "no-new-privs",
            "ambient-caps:",
            "inh-caps:",
            "bounding-set:",
            "ruid:",
            "euid:",
            "rgid:",
            "egid:",
            "reuid:",
            "regid:",
            "clear-groups",
            "keep-groups",
            "init-groups",
            "groups:",
            "securebits:",
            "pdeathsig:",
            "ptracer:",
            "selinux-label:",
            "apparmor-profile:",
            "landlock-access:",
            "landlock-rule:",
            "seccomp-filter:",
            "reset-env",
            "help",
            "version",
        ],
    ),
    Wrapper::new(&["chroot"], "g:G:u:n", &["groups:", "userspec:", "skip-chdir", "help", "version"])
        .operands(1)
        .elsewhere()
        .or_shell(),
    Wrapper::new(
        &["unshare"],
        "muinpUCTfrcR:w:S:G:hV",
        &[
            "mount::",
            "uts::",
            "ipc::",
            "net::",
            "pid::",
            "user::",
            "cgroup::",
            "time::",
            "fork",
            "map-user:",
            "map-group:",
            "map-root-user",
            "map-current-user",
            "map-auto",
            "map-users:",
            "map-groups:",
            "kill-child::",
            "mount-proc::",
            "mount-binfmt::",
            "propagation:",
            "setgroups:",
            "keep-caps",
            "root:",
            "wd:",
            "setuid:",
            "setgid:",
            "monotonic:",
            "boottime:",
            "load-interp:",
            "owner:",
            "help",
            "version",
        ],
    )
    .folder(&["w", "wd"])
    .moves(&["R", "root"])
    .or_shell(),
    Wrapper::new(
        &["nsenter"],
        "at:m::u::i::n::p::C::U::T::S:G:r::w::W:FZcehV",
        &[
            "all",
            "target:",
            "mount::",
            "uts::",
            "ipc::",
            "net::",
            "net-socket:",
            "pid::",
            "cgroup::",
            "user::",
            "user-parent",
            "time::",
            "setuid:",
            "setgid:",
            "preserve-credentials",
            "keep-caps",
            "root::",
            "wd::",
            "wdns:",
            "env",
            "no-fork",
            "join-cgroup",
            "follow-context",
            "help",
            "version",
        ],
    )
    .elsewhere()
    .or_shell(),
    // `-o '|TEXT'` and `-o '!TEXT'` write to a command.
    Wrapper::new(
        &["strace"],
        "e:E:p:u:b:I:P:a:o:s:X:O:S:U:DfFizZknNAqrtTvxyYcCwdhV",
        &[
            "env:",
            "attach:",
            "user:",
            "argv0:",
            "detach-on:",
            "daemonize::",
            "daemonised::",
            "daemonized::",
            "follow-forks::",
            "output-separately",
            "interruptible:",
            "trace:",
            "trace-fds:",
            "signal:",
            "status:",
            "trace-path:",
            "successful-only",
            "failed-only",
            "columns:",
            "abbrev:",
            "verbose:",
            "raw:",
            "read:",
            "write:",
            "quiet::",
            "silent::",
            "silence::",
            "kvm:",
            "decode-fds::",
            "decode-pids:",
            "instruction-pointer",
            "stack-traces::",
            "stack-trace::",
            "stack-trace-frame-limit:",
            "syscall-number",
            "output:",
            "output-append-mode",
            "relative-timestamps::",
            "string-limit:",
            "strings-in-hex::",
            "absolute-timestamps::",
            "timestamps::",
            "syscall-times::",
            "no-abbrev",
            "const-print-style:",
            "arg-names",
            "summary-only",
            "summary",
            "summary-syscall-overhead:",
            "summary-sort-by:",
            "summary-columns:",
            "summary-wall-clock",
            "inject:",
            "fault:",
            "always-show-pid",
            "debug",
            "seccomp-bpf",
            "tips::",
            "help",
            "version",
        ],
    )
    .assigns(&["E", "env"])
    .texts(&["o", "output"], &['|', '!']),
    Wrapper::new(
        &["ltrace"],
        "a:A:bcCD:e:fF:hil:Ln:o:p:rs:StTu:Vw:x:X:",
        &["align:", "config:", "debug:", "demangle", "help", "indent:", "library:", "no-signals", "output:", "version", "where:"],
    ),
    Wrapper::new(
        &["systemd-run"],
        "hH:M:u:p:rE:tPqGSdC:",
        &[
            "help",
            "version",
            "no-ask-password",
            "user",
            "system",
            "host:",
            "machine:",
            "scope",
            "unit:",
            "property:",
            "description:",
            "slice:",
            "slice-inherit",
            "expand-environment:",
            "no-block",
            "remain-after-exit",
            "wait",
            "send-sighup",
            "service-type:",
            "uid:",
            "gid:",
            "nice:",
            "working-directory:",
            "same-dir",
            "setenv:",
            "pty",
            "pty-late",
            "pipe",
            "quiet",
            "collect",
            "shell",
            "job-mode:",
            "ignore-failure",
            "background:",
            "path-property:",
            "socket-property:",
            "on-active:",
            "on-boot:",
            "on-startup:",
            "on-unit-active:",
            "on-unit-inactive:",
            "on-calendar:",
            "on-timezone-change",
            "on-clock-change",
            "timer-property:",
            "capsule:",
        ],
    )
    .folder(&["working-directory"])
    .assigns(&["E", "setenv"])
    .unknown_place()
    .moves(&["H", "M", "host", "machine"])
    .or_shell(),
    Wrapper::new(&["chronic"], "ev", &[]),
    Wrapper::new(&["ifne"], "n", &[]),
    Wrapper::new(&["unbuffer"], "p", &[]),
    Wrapper::new(&["eatmydata"], "", &[]),
    Wrapper::new(&["caffeinate"], "disumt:w:", &[]),
    Wrapper::new(&["noglob", "nocorrect"], "", &[]),
    Wrapper::new(&["pkexec"], "", &["user:", "disable-internal-agent", "keep-cwd", "help", "version"]).unknown_place(),
    Wrapper::new(&["gosu", "su-exec"], "", &[]).operands(1),
    Wrapper::new(&["tini"], "svwgp:le:h", &["version"]),
    Wrapper::new(&["dumb-init"], "chr:vV", &["single-child", "rewrite:", "verbose", "help", "version"]),
    Wrapper::new(&["firejail", "fakeroot", "proxychains", "proxychains4", "torsocks", "dbus-run-session"], "", &[]),
];
