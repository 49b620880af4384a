//! Programs whose child runs on another machine or in a container, where no path means what it means here.
//!
//! | the call                                    | it runs                                                            |
//! |---------------------------------------------|--------------------------------------------------------------------|
//! | `ssh HOST X ..`                             | the words joined by a space, as text of a shell of the other side  |
//! | `ssh HOST`                                  | a shell of the other side that reads the input                     |
//! | `ssh -N`, `-W`, `-O`, `-Q`, `-G`, `-V`      | nothing                                                            |
//! | `ssh -o ProxyCommand=TEXT` and its like     | the text, here                                                     |
//! | `docker run IMAGE X`, `exec CONTAINER X`    | the command `X` in it; after `--entrypoint P`: `P X`               |
//! | `docker compose run SERVICE X`              | the same                                                           |
//! | `kubectl exec POD -- X`                     | the command `X` in it                                              |
//!
//! With an option of docker that is not in the table nothing is known: it may take the next word.

use super::super::field::Field;
use super::options::{Call, Grammar, joined, tail};
use super::{Child, Children, Folder, Found};

const SSH: Grammar = Grammar::new("46AaCfGgKkMNnqsTtVvXxYyB:b:c:D:E:e:F:I:i:J:L:l:m:O:o:P:p:Q:R:S:W:w:", &[]);

/// Settings whose value is run on this side.
const SSH_LOCAL: &[&str] = &["proxycommand", "localcommand", "knownhostscommand", "match"];

pub(super) fn ssh(call: &mut Call<'_>) -> Found {
    let mut options = call.leading(&SSH, 1)?;
    call.operand(options.rest);
    let mut rest = (options.rest + 1).min(call.fields.len());
    // Options may stand on both sides of the host.
    if !options.ended {
        let more = call.leading(&SSH, rest)?;
        options.given.extend(more.given);
        rest = more.rest;
    }
    let mut list = Vec::new();
    let mut remote = None;
    for setting in options.values(&["o"]) {
        let Some(at) = setting.text.find(['=', ' ', '\t']) else { continue };
        let name = setting.text[..at].to_ascii_lowercase();
        let value = tail(setting, at + setting.text[at..].len() - setting.text[at..].trim_start_matches(['=', ' ', '\t']).len());
        match name.as_str() {
            "remotecommand" => remote = Some(value),
            _ if SSH_LOCAL.contains(&name.as_str()) && value.literal() != Some("none") => list.push(Child::text(value)),
            _ => {}
        }
    }
    let words = &call.fields[rest..];
    let silent = options.has(&["N", "W", "O", "Q", "G", "V", "s"]);
    let elsewhere = match joined(words).or(remote) {
        Some(text) if !options.has(&["s"]) => Some(Child::text(text)),
        None if !silent => Some(Child::input()),
        _ => None,
    };
    list.extend(elsewhere.map(|child| child.within(&Folder::Elsewhere)));
    Ok(list.into())
}

/// Options before the subcommand, of docker, podman and compose.
const GLOBAL: Grammar = Grammar::new(
    "c:DH:l:vf:p:r",
    &[
        "config:",
        "context:",
        "debug",
        "host:",
        "log-level:",
        "tls",
        "tlscacert:",
        "tlscert:",
        "tlskey:",
        "tlsverify",
        "version",
        "connection:",
        "url:",
        "identity:",
        "remote",
        "root:",
        "runroot:",
        "storage-driver:",
        "ansi:",
        "compatibility",
        "env-file:",
        "file:",
        "parallel:",
        "profile:",
        "progress:",
        "project-directory:",
        "project-name:",
        "namespace:",
    ],
);

/// Options of `run`, `create` and `exec`, of docker, podman and compose.
const RUN: Grammar = Grammar::new(
    "a:c:de:h:il:m:p:Pqtu:v:w:T",
    &[
        "add-host:",
        "annotation:",
        "arch:",
        "attach:",
        "blkio-weight:",
        "blkio-weight-device:",
        "build",
        "cap-add:",
        "cap-drop:",
        "cgroup-parent:",
        "cgroupns:",
        "cidfile:",
        "cpu-count:",
        "cpu-percent:",
        "cpu-period:",
        "cpu-quota:",
        "cpu-rt-period:",
        "cpu-rt-runtime:",
        "cpu-shares:",
        "cpus:",
        "cpuset-cpus:",
        "cpuset-mems:",
        "detach",
        "detach-keys:",
        "device:",
        "device-cgroup-rule:",
        "device-read-bps:",
        "device-read-iops:",
        "device-write-bps:",
        "device-write-iops:",
        "disable-content-trust::",
        "dns:",
        "dns-option:",
        "dns-search:",
        "domainname:",
        "entrypoint:",
        "env:",
        "env-file:",
        "env-from-file:",
        "expose:",
        "gpus:",
        "group-add:",
        "health-cmd:",
        "health-interval:",
        "health-retries:",
        "health-start-interval:",
        "health-start-period:",
        "health-timeout:",
        "help",
        "hostname:",
        "index:",
        "init::",
        "interactive::",
        "ip:",
        "ip6:",
        "ipc:",
        "isolation:",
        "label:",
        "label-file:",
        "link:",
        "link-local-ip:",
        "log-driver:",
        "log-opt:",
        "mac-address:",
        "memory:",
        "memory-reservation:",
        "memory-swap:",
        "memory-swappiness:",
        "mount:",
        "name:",
        "network:",
        "net:",
        "network-alias:",
        "no-TTY",
        "no-deps",
        "no-healthcheck",
        "no-tty",
        "oom-kill-disable::",
        "oom-score-adj:",
        "pid:",
        "pids-limit:",
        "platform:",
        "pod:",
        "privileged::",
        "publish:",
        "publish-all::",
        "pull:",
        "quiet",
        "quiet-build",
        "quiet-pull",
        "read-only::",
        "remove-orphans",
        "replace",
        "restart:",
        "rm::",
        "runtime:",
        "secret:",
        "security-opt:",
        "service-ports",
        "shm-size:",
        "sig-proxy::",
        "stop-signal:",
        "stop-timeout:",
        "storage-opt:",
        "sysctl:",
        "systemd:",
        "tmpfs:",
        "tty::",
        "tz:",
        "ulimit:",
        "umask:",
        "use-aliases",
        "use-api-socket",
        "user:",
        "userns:",
        "uts:",
        "volume:",
        "volume-driver:",
        "volumes-from:",
        "workdir:",
    ],
);

pub(super) fn docker(call: &mut Call<'_>, name: &str) -> Found {
    match containers(call, name) {
        Err(stop) if !stop.computed => Ok(Children::default()),
        found => found,
    }
}

fn containers(call: &mut Call<'_>, name: &str) -> Found {
    let mut at = call.leading(&GLOBAL, 1)?.rest;
    let group: &[&str] = if name == "docker-compose" { &[] } else { &["container", "compose"] };
    if call.literal(at).is_some_and(|word| group.contains(&word)) {
        at = call.leading(&GLOBAL, at + 1)?.rest;
    }
    if !matches!(call.literal(at), Some("run" | "create" | "exec")) {
        return Ok(Children::default());
    }
    let options = call.leading(&RUN, at + 1)?;
    call.operand(options.rest);
    let mut words: Vec<Field> =
        options.value(&["entrypoint"]).filter(|word| !word.text.is_empty()).cloned().into_iter().collect();
    words.extend(call.rest(options.rest + 1));
    let mut list: Vec<Child> = options.values(&["health-cmd"]).cloned().map(Child::text).collect();
    list.extend(Child::command(words));
    Ok(list.into_iter().map(|child| child.within(&Folder::Elsewhere)).collect::<Vec<_>>().into())
}

/// The child stands after `--`; what is before it is not read.
pub(super) fn kubectl(call: &mut Call<'_>) -> Found {
    let Some(at) = call.fields.iter().position(|word| word.literal() == Some("--")) else { return Ok(Children::default()) };
    let before = &call.fields[..at];
    if !before.iter().any(|word| matches!(word.literal(), Some("exec" | "run" | "debug" | "rsh" | "create"))) {
        return Ok(Children::default());
    }
    let child = Child::command(call.rest(at + 1)).map(|child| child.within(&Folder::Elsewhere));
    Ok(child.into_iter().collect::<Vec<_>>().into())
}
