//! The families in one notation: see [`show`].

use super::super::field::Open;
use super::*;

/// The words of a line: `'..'` quotes, `<1>` is unknown text within a word, `<>` ends a word that may be several, `*` makes a pattern.
pub(super) fn words(line: &str) -> Vec<Field> {
    let mut fields = Vec::new();
    let mut word: Option<(String, usize)> = None;
    let mut quoted = false;
    for (at, c) in line.char_indices().chain([(line.len(), ' ')]) {
        match c {
            '\'' => {
                quoted = !quoted;
                word.get_or_insert((String::new(), at + 1));
            }
            ' ' if !quoted => {
                let Some((text, start)) = word.take() else { continue };
                let (text, tail, open) = match (text.split_once("<1>"), text.strip_suffix("<>")) {
                    (Some((text, tail)), _) => (text.to_owned(), tail.to_owned(), Open::One),
                    (_, Some(text)) => (text.to_owned(), String::new(), Open::Many),
                    _ => (text, String::new(), Open::No),
                };
                let exact = line[start..].starts_with(&text).then_some(start);
                let pattern = text.contains('*');
                fields.push(Field { text, open, tail, exact, pattern, span: start..at, ..Field::default() });
            }
            _ => word.get_or_insert((String::new(), at)).0.push(c),
        }
    }
    fields
}

fn show_field(field: &Field) -> String {
    let text = if field.text.contains(' ') || field.text.is_empty() && field.open == Open::No {
        format!("'{}'", field.text)
    } else {
        field.text.clone()
    };
    text + ["", "<1>", "<>"][field.open as usize] + &field.tail
}

fn show_fields(fields: &[Field]) -> String {
    fields.iter().map(show_field).collect::<Vec<_>>().join(" ")
}

/// A command as its words, assignments before it; `text`, `input` and `file` with the positional words after `|`; `@` and the folder,
/// `^` for text of this shell, `~` for later, `<` for words from the input; `?` for something unclear, `+?` when nothing is known.
fn show(children: &Children) -> String {
    let mut shown: Vec<String> = children.list.iter().map(show_child).collect();
    if !children.known {
        shown.push("...".to_owned());
    }
    shown.join("; ")
}

fn show_child(child: &Child) -> String {
    let (body, positional, scope, folder) = match child {
        Child::Command { words, assignments, folder, fed } => {
            let set: String = assignments.iter().map(|(name, value)| format!("{name}={} ", show_field(value))).collect();
            let fed = if *fed { " <" } else { "" };
            (format!("{set}{}{fed}", show_fields(words)), &[][..], Scope::Apart, folder)
        }
        Child::Text { text, positional, scope, folder } => {
            (format!("text {}", show_field(text)), &positional[..], *scope, folder)
        }
        Child::Input { positional, scope, folder } => ("input".to_owned(), &positional[..], *scope, folder),
        Child::File { path, positional, scope, folder } => {
            (format!("file {}", show_field(path)), &positional[..], *scope, folder)
        }
        Child::Unclear(_) => return "?".to_owned(),
    };
    let positional = if positional.is_empty() { String::new() } else { format!(" | {}", show_fields(positional)) };
    let scope = ["", " ^", " ~"][scope as usize];
    let folder = match folder {
        Folder::Same => String::new(),
        Folder::Known(field) => format!(" @{}", show_field(field)),
        Folder::Unknown => " @?".to_owned(),
        Folder::Elsewhere => " @@".to_owned(),
    };
    format!("{body}{positional}{scope}{folder}")
}

fn check(table: &[(&str, &str)]) {
    let wrong = table.iter().filter_map(|(line, expected)| {
        let shown = show(&children(&words(line)));
        (shown != *expected).then(|| format!("{line}\n  shown    {shown}\n  expected {expected}"))
    });
    let wrong: Vec<String> = wrong.collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn plain_wrappers_run_the_words_after_their_options() {
    check(&[
        ("nohup git push -f", "git push -f"),
        ("nohup", ""),
        ("/usr/bin/nohup rm", "rm"),
        ("./nohup rm", "rm; ..."),
        ("NICE.EXE rm", "rm"),
        ("nice rm -rf src", "rm -rf src"),
        ("nice -n 5 rm", "rm"),
        ("nice -n5 rm", "rm"),
        ("nice -10 rm", "rm"),
        ("nice --10 rm", "rm"),
        ("nice --adjustment=5 rm", "rm"),
        ("nice --adj 5 rm", "rm"),
        ("nice --rm rm", "?; ..."),
        ("ionice -c3 -n 7 git push -f", "git push -f"),
        ("ionice -p 1 2", ""),
        ("timeout 5 rm -rf src", "rm -rf src"),
        ("timeout -k 1 -s rm 5 ls", "ls"),
        ("timeout --signal=KILL 5 rm", "rm"),
        ("timeout --preserve-status --foreground 1m git push", "git push"),
        ("timeout 5", ""),
        ("timeout <1> rm", "rm; ?"),
        ("timeout 5<1> rm", "rm"),
        ("timeout 5<> rm", "rm; ?"),
        ("timeout -k <1> 5 rm", "rm"),
        ("timeout -k * 5 rm", "rm; ?"),
        ("timeout * rm", "rm; ?"),
        ("timeout 5 rm *", "rm *"),
        ("timeout -k<> 5 rm", "rm; ?"),
        ("timeout -t 5 rm", "?; ..."),
        ("gtimeout 5 rm", "rm"),
        ("stdbuf -oL -e 0 rm", "rm"),
        ("setsid -w rm", "rm"),
        ("time -f %e -o x rm", "rm"),
        ("chrt -r 10 rm", "rm"),
        ("chrt -p 10 1", ""),
        ("taskset -c 0 git push", "git push"),
        ("taskset 1 rm", "rm"),
        ("chroot --userspec a:b /x rm", "rm @@"),
        ("chroot /x", "input @@"),
        ("unshare -r rm", "rm"),
        ("unshare -rw /x rm", "rm @/x"),
        ("unshare -R/x rm", "rm @@"),
        ("strace -f -o /tmp/t -E A=b rm", "A=b rm"),
        ("strace -o '|rm x' ls", "text 'rm x'; ls"),
        ("strace --trace=open ls", "ls"),
        ("systemd-run --user --scope -p A=b rm", "rm @?"),
        ("systemd-run -M x rm", "rm @@"),
        ("systemd-run -d -S", "input @?"),
        ("chronic git push --force", "git push --force"),
    ]);
}

#[test]
fn env_sets_assignments_and_splits_texts() {
    check(&[
        ("env", ""),
        ("env X=1", ""),
        ("env rm -rf src", "rm -rf src"),
        ("env -i PATH=<> git push -f", "PATH=<> git push -f; ?"),
        ("env PATH=<1> A=b git", "PATH=<1> A=b git"),
        ("env -u HOME rm", "rm"),
        ("env - rm", "rm"),
        ("env -C src -u X rm -rf .", "rm -rf . @src"),
        ("env --chdir=src rm", "rm @src"),
        ("env -- A=b rm -x", "A=b rm -x"),
        ("env -S 'rm -rf src'", "rm -rf src"),
        ("env '-Sgit push -f' origin", "git push -f origin"),
        ("env -iS 'X=1 rm' -rf src", "X=1 rm -rf src"),
        ("env -vS 'git push -f' origin", "git push -f origin"),
        ("env '--split-string=-u A rm' -rf", "rm -rf"),
        ("env -S 'rm\\_-rf'", "rm -rf"),
        ("env -S 'rm ${X}'", "rm <1>"),
        ("env -S 'rm $X'", "?; ..."),
        ("env -S 'rm <1>'", "?; ..."),
        ("env -S '-S-S-S-S-S-S-S-S-S-S-Srm'", "?; ..."),
        ("env <1> rm", "<1> rm; ?"),
        ("env --rm rm", "?; ..."),
    ]);
}

#[test]
fn programs_of_other_users_run_words_or_a_shell() {
    check(&[
        ("sudo rm -rf src", "rm -rf src"),
        ("sudo -u x -- git push -f", "git push -f"),
        ("sudo -nE rm", "rm"),
        ("sudo -E X=1 -u y git push", "X=1 git push"),
        ("sudo --user=x --group y rm", "rm"),
        ("sudo -u rm ls -rf src", "ls -rf src"),
        ("sudo -i git push -f", "git push -f @?"),
        ("sudo -s rm '#' '$x' 'a;b'", "rm # <> a;b"),
        ("sudo -i", "input @?"),
        ("sudo -l rm", ""),
        ("sudo -v", ""),
        ("sudo -D /x rm", "rm @/x"),
        ("sudo -R /x rm", "rm @@"),
        ("sudo -k rm", "rm"),
        ("sudo <1> rm", "<1> rm; ?"),
        ("sudo --other rm ls", "ls"),
        ("sudo --unheard rm", "?; ..."),
        ("doas -u x rm", "rm"),
        ("doas -s", "input"),
        ("doas -C x rm", ""),
        ("su -c 'rm -rf src'", "text 'rm -rf src'"),
        ("su x -c rm a b", "text rm | a b"),
        ("su - x -c rm", "text rm @?"),
        ("su -", "input @?"),
        ("su x", "input"),
        ("su x -- -c rm", "text rm"),
        ("su x y.sh a", "file y.sh | a"),
        ("su -s /bin/bash -c rm x", "/bin/bash -c rm"),
        ("su --command=rm", "text rm"),
        ("runuser -u x -- rm -rf src", "rm -rf src"),
        ("runuser -u x git push -f", "git push"),
        ("runuser -u x rm -rf src", "?; ..."),
        ("runuser x -c rm", "text rm"),
        ("sg x 'rm y'", "text 'rm y'"),
        ("sg x -c 'rm y'", "text 'rm y'"),
    ]);
}

#[test]
fn shells_read_text_a_file_or_the_input() {
    check(&[
        ("sh -c 'rm -rf src'", "text 'rm -rf src'"),
        ("bash -lc rm", "text rm"),
        ("bash -l -c rm a b", "text rm | a b"),
        ("bash -exc rm", "text rm"),
        ("bash -cx rm", "text rm"),
        ("bash -c -x rm", "text rm"),
        ("bash -c -- rm", "text rm"),
        ("bash +x -c rm", "text rm"),
        ("bash -o pipefail -c rm", "text rm"),
        ("bash -euo pipefail -c rm", "text rm"),
        ("bash -co pipefail rm", "text rm"),
        ("bash -co pipefail +O x rm", "text rm"),
        ("bash --norc --noprofile -c rm", "text rm"),
        ("bash -norc -c rm", "text rm"),
        ("bash --rcfile x -i", "file x; input"),
        ("bash -c", ""),
        ("bash -c <>", "text <>; ?"),
        ("bash -c rm<1>", "text rm<1>"),
        ("bash", "input"),
        ("bash -", "input"),
        ("bash -s a", "input | a"),
        ("dash -s -c rm a", "input | a; text rm | a"),
        ("bash -s -- a", "input | a"),
        ("bash /dev/stdin a", "input | a"),
        ("bash /dev/fd/3", "file /dev/fd/3"),
        ("bash -x y.sh -c rm", "file y.sh | -c rm"),
        ("bash <1>", "file <1>; ?"),
        ("bash -<1> x", "?; ..."),
        ("bash --unheard -c rm", "?; ..."),
        ("bash -z rm", "?; ..."),
        ("zsh -opipefail -c rm", "?; ..."),
        ("zsh -o pipefail -c rm", "text rm"),
        ("/bin/dash -c rm", "text rm"),
        ("rbash -c rm", "text rm"),
        ("fish -c rm", "?; ..."),
    ]);
}

#[test]
fn builtins_run_words_or_text_of_this_shell() {
    check(&[
        ("command rm -rf src", "rm -rf src"),
        ("command -p -- git push", "git push"),
        ("command -v rm", ""),
        ("command -pV rm", ""),
        ("command -x rm", "?; ..."),
        ("builtin command rm", "command rm"),
        ("builtin rm -rf src", ""),
        ("builtin -- eval rm", "eval rm"),
        ("builtin <1> rm", "<1> rm; ?"),
        ("exec -a ls rm", "rm"),
        ("exec -cl git push", "git push"),
        ("exec", ""),
        ("eval rm -rf src", "text 'rm -rf src' ^"),
        ("eval -- 'rm x'", "text 'rm x' ^"),
        ("eval rm <1> x", "text 'rm '<1> x ^"),
        ("eval a<1>b c <1>d", "text a<1>d ^"),
        ("eval <> rm", "text <1> rm ^"),
        ("eval", ""),
        (". ./x a", "file ./x | a ^"),
        ("source -- x", "file x ^"),
        ("source /dev/stdin", "input ^"),
        ("source <1>", "file <1> ^; ?"),
        ("trap -- 'rm x' DEBUG", "text 'rm x' ~ @?"),
        ("trap - EXIT", ""),
        ("trap 2", ""),
        ("trap '' INT", ""),
        ("trap -p EXIT", ""),
        ("trap <1> EXIT", "text <1> ~ @?; ?"),
        ("mapfile -t x", ""),
        ("mapfile -c 1 -C 'rm x' y", "text 'rm x \"$@\"' | 'rm x' <1> <1> ^"),
        ("compgen -C 'rm x' y", "text 'rm x \"$@\"' | 'rm x' <1> <1> <1> ^"),
        ("complete -C rm y", "text 'rm \"$@\"' | rm <1> <1> <1> ~ @?"),
        ("compgen -W '$(rm x)'", "?"),
        ("bind -x '\"\\C-x:\":rm x'", "text 'rm x' ~ @?"),
        ("bind '\"x\": \"rm\"'", "?"),
        ("bind -p", ""),
    ]);
}

#[test]
fn words_from_the_input_are_open() {
    check(&[
        ("xargs rm -rf", "rm -rf <> <"),
        ("xargs", ""),
        ("xargs -n 1 rm", "rm <> <"),
        ("xargs -r -P4 -n1 -- rm -r", "rm -r <> <"),
        ("xargs --max-args=1 rm", "rm <> <"),
        ("xargs -0 -d x rm", "rm <> <"),
        ("xargs -a list rm", "rm <>"),
        ("xargs -I{} rm -rf a/{}/b c", "rm -rf a/<1>/b c <"),
        ("xargs -I % sh -c 'rm %'", "sh -c 'rm '<1> <"),
        ("xargs -i rm {}", "rm <1> <"),
        ("xargs --replace=X rm X", "rm <1> <"),
        ("xargs -I{} -n1 rm {}", "rm <1> <> <"),
        ("xargs -J % rm % x", "rm <1> x <> <"),
        ("xargs -I <1> rm x", "<1> <1> <"),
        ("xargs --unheard rm", "?; ..."),
        ("parallel rm -rf {}", "rm -rf <1> <"),
        ("parallel -j 4 gzip", "gzip <> <"),
        ("parallel 'rm -rf {}'", "rm -rf <1> <"),
        ("parallel rm -rf ::: src", "rm -rf <>"),
        ("parallel rm <1>", "text 'rm '<1>"),
        ("parallel 'rm; ls'", "text 'rm; ls'<1>"),
        ("parallel ::: 'rm x' ls", "text 'rm x'; text ls"),
        ("parallel", "input"),
        ("parallel -a x", "?"),
        ("parallel 'rm {= 1 =}'", "?"),
        ("entr -r rm /_", "rm <1> <"),
        ("entr -s 'rm x'", "text 'rm x'"),
    ]);
}

#[test]
fn find_runs_the_words_of_each_exec() {
    check(&[
        ("find . -name x -exec rm -rf {} ;", "rm -rf .<1>"),
        ("find -exec rm {} ;", "rm .<1>"),
        ("find build/a build/b -exec rm x{} ;", "rm x<1>"),
        ("find build/a build/b -exec rm {} ;", "rm build/<1>"),
        ("find . -exec rm {} +", "rm .<1> .<1>"),
        ("find . -type d -ok rm {} ; -print", "rm .<1>"),
        ("find . -execdir rm {} ;", "rm ./<1> @?"),
        ("find / -exec env rm {} ; -exec ls ;", "env rm /<1>; ls"),
        ("find . -name -exec -exec rm {} ;", "-exec rm .<1>; rm .<1>"),
        ("find . -exec rm {}", ""),
        ("find . -exec echo + {} ;", "echo + .<1>"),
        ("find . -delete", ""),
        ("find <1> -name x -exec rm {} ;", "rm <1>"),
        ("find <1> rm {} ;", "?"),
        ("find <> -name x", "?"),
        ("find src* -name x* -exec rm {}/y{}.z ;", "rm src<1>.z"),
        ("find -H ( . ) -exec rm {} ;", "rm .<1>"),
        ("find -files0-from x -exec rm {} ;", "rm <1>"),
        ("find -exec {} + x ;", ".<1> .<1>"),
        ("find {} -exec + x ;", "+ x"),
        ("fd -t d x -x rm -rf", "rm -rf <1>"),
        ("fd -Hx rm {} ; -X ls {/}", "rm <1>; ls <1> <1>"),
        ("fd -e x y", ""),
        ("fd x -x mv {} {.}.y", "mv <1> <1>.y"),
        ("fd --exec=rm", "rm <1>"),
        ("fd -- -x rm", ""),
    ]);
}

#[test]
fn what_is_told_of_many_parts_is_bounded() {
    let line = format!("find . {}rm ;", "-exec ".repeat(100));
    let found = children(&words(&line));
    assert!(found.list.len() < 12 && matches!(found.list.last(), Some(Child::Unclear(_))), "{}", found.list.len());
    let line = format!("find . {}", "-exec rm ; ".repeat(100));
    assert_eq!(children(&words(&line)).list.len(), 100);
}

#[test]
fn git_runs_aliases_settings_and_texts() {
    check(&[
        ("git push -f", ""),
        ("git -C x commit -m rm", ""),
        ("git frob x", "..."),
        ("git -c alias.x='push --force' x origin", "git -c 'alias.x=push --force' push --force origin; ..."),
        ("git -c alias.x='!rm -rf /' x", "text 'rm -rf /' @?; ..."),
        ("git -c alias.x=!rm X y", "text 'rm \"$@\"' | rm y @?; ..."),
        ("git -c alias.x=<1> x", "?; ..."),
        ("git -c alias.x=y -c Alias.X=z x", "git -c alias.x=y -c Alias.X=z z; ..."),
        ("git -c 'alias.x=\"a' x", "?; ..."),
        ("git -c core.sshCommand='rm -rf src;' fetch", "text 'rm -rf src; \"$@\"' | 'rm -rf src;' <> @?; ..."),
        ("git -c credential.helper=store -c core.fsmonitor=false fetch", "..."),
        ("git -c credential.helper='!rm x' fetch", "text 'rm x \"$@\"' | 'rm x' <> @?; ..."),
        ("git -c diff.a.textconv=rm diff", "text 'rm \"$@\"' | rm <> @?; ..."),
        ("git -c <1> fetch", "?; ..."),
        ("git --config-env=core.pager=X log", "?; ..."),
        ("git rebase -x 'rm -rf src' HEAD~3", "text 'rm -rf src' @?"),
        ("git rebase -i main --exec 'git push -f'", "text 'git push -f' @?"),
        ("git rebase --exec=a -xb -ix c -Xours", "text a @?; text b @?; text c @?"),
        ("git bisect run rm -rf src", "rm -rf src @?"),
        ("git bisect start", ""),
        ("git submodule --quiet foreach --recursive 'rm x'", "text 'rm x' @?"),
        ("git submodule foreach rm x", "text 'rm \"$@\"' | rm x @?"),
        ("git submodule update --init", ""),
        ("git filter-branch --tree-filter 'rm x' HEAD", "text 'rm x' @?"),
        ("git difftool -x rm a", "text 'rm \"$@\"' | rm <1> <1> @?; ..."),
        ("git grep -O'rm x' y", "text 'rm x \"$@\"' | 'rm x' <1> @?; ..."),
        ("git grep -nOrm --open=ls -eO y", "text 'rm \"$@\"' | rm <1> @?; text 'ls \"$@\"' | ls <1> @?; ..."),
        ("git for-each-repo --config k push -f", "git push -f @?"),
        ("git fetch --upload-pack='rm x' y", "text 'rm x \"$@\"' | 'rm x' <1> @@; ..."),
        ("git clone -c core.pager=rm x", "text 'rm \"$@\"' | rm <> @?; ..."),
        ("git --unheard push", "?; ..."),
        ("git <1> push", "?; ..."),
    ]);
}

#[test]
fn package_managers_run_words_or_text() {
    check(&[
        ("npx -c 'rm -rf src'", "text 'rm -rf src'"),
        ("npx -y vitest@2 run", "vitest run"),
        ("npx @a/b@1 x", "@a/b x"),
        ("npx --unheard rm", "..."),
        ("npx <1> rm", "<1> rm; ?"),
        ("npm exec -- rm -rf src", "rm -rf src"),
        ("npm --prefix x exec rm", "rm @?"),
        ("npm x --package=a -c rm", "text rm"),
        ("npm run build", "..."),
        ("pnpm exec git push -f", "git push -f"),
        ("pnpm -r exec rm", "rm @?"),
        ("pnpm exec -c 'rm x' y", "text 'rm x y'"),
        ("pnpm rm x", "..."),
        ("yarn dlx -p a b", "b"),
        ("bunx rm", "rm"),
        ("uv run rm -rf src", "rm -rf src"),
        ("uv run --with x -p 3 python -c y", "python -c y"),
        ("uv pip install x", "..."),
        ("uv run x.py rm", "..."),
        ("uv run -", "..."),
        ("uvx ruff@1 check", "ruff check"),
        ("mise exec -- git push -f", "git push -f"),
        ("mise x node@20 -- rm", "rm"),
        ("mise exec -c 'rm x'", "text 'rm x'; ..."),
        ("mise run x", "..."),
        ("corepack npm install", "npm install"),
        ("corepack pnpm@9 install", "pnpm install"),
        ("corepack enable", "..."),
        ("poetry run rm", "rm"),
        ("rustup run nightly rm", "rm"),
        ("dotenv -- rm -rf src", "rm -rf src"),
    ]);
}

#[test]
fn other_machines_are_elsewhere() {
    check(&[
        ("ssh host 'rm -rf /srv'", "text 'rm -rf /srv' @@"),
        ("ssh -p 22 host -v git push --force", "text 'git push --force' @@"),
        ("ssh host", "input @@"),
        ("ssh -N -L 1:a:2 host", ""),
        ("ssh -oProxyCommand=rm host", "text rm; input @@"),
        ("ssh -o 'ProxyCommand rm x' host ls", "text 'rm x'; text ls @@"),
        ("ssh -o BatchMode=yes host ls", "text ls @@"),
        ("ssh <1> ls", "text ls @@; ?"),
        ("docker run --rm -v .:/w img rm -rf /w", "rm -rf /w @@"),
        ("docker run --entrypoint rm img x", "rm x @@"),
        ("docker exec -it c sh -c rm", "sh -c rm @@"),
        ("docker --context x container exec c rm", "rm @@"),
        ("docker compose -f x exec -T db rm", "rm @@"),
        ("docker-compose run a rm", "rm @@"),
        ("docker run --unheard img rm", "..."),
        ("docker build .", "..."),
        ("podman run img rm", "rm @@"),
        ("kubectl -n x exec pod -c y -- rm", "rm @@"),
        ("kubectl get pods", "..."),
    ]);
}

#[test]
fn texts_stand_among_options() {
    check(&[
        ("busybox rm -rf src", "rm -rf src"),
        ("busybox --list", ""),
        ("watch -n 1 'rm x' y", "text 'rm x y'"),
        ("watch -x git push -f", "git push -f"),
        ("script -qc 'rm x' /dev/null", "text 'rm x'"),
        ("script /dev/null -c 'rm x'", "text 'rm x'"),
        ("script -q /dev/null rm -rf x", "rm -rf x"),
        ("script", "input"),
        ("flock /tmp/l rm", "rm"),
        ("flock -w 5 /tmp/l -c 'rm x'", "text 'rm x'"),
        ("flock -n 9", ""),
        ("tar cf x --checkpoint=1 --checkpoint-action=exec='rm x' .", "text 'rm x'"),
        ("tar --checkpoint-act exec=rm -cf x .", "text rm"),
        ("tar --checkpoint-action=dot -cf x .", ""),
        ("tar -cI 'zstd -9' -f x .", "text 'zstd -9 \"$@\"' | 'zstd -9' <>"),
        ("tar cIf zstd x .", "text 'zstd \"$@\"' | zstd <>"),
        ("tar -cfI x", ""),
        ("tar xf x -I ./dot", "text './dot \"$@\"' | ./dot <>"),
        ("tar cf x --checkpoint-action=<1> .", "?"),
        ("tar xf x --to-command=rm --checkpoint-action exec=ls", "text rm; text ls"),
        ("rsync -e 'rm -rf src' a b:", "rm -rf src host rsync --server"),
        ("rsync -ave 'ssh -p 2' a b:", "ssh -p 2 host rsync --server"),
        ("rsync --rsh=ssh --rsync-path='rm x' a b:", "ssh host rsync --server; text 'rm x' @@"),
        ("rsync -av a b", ""),
        ("split -l 1 --filter='rm x' y", "text 'rm x'"),
        ("at now", "input"),
        ("at -f x now", "file x"),
        ("at -l", ""),
        ("crontab -", "?"),
        ("crontab -l", ""),
        ("make --eval=x:;rm x", "..."),
        ("make --eval=<1>", "?; ..."),
        ("vim -c '!rm x' -c q", "text 'rm x'; ..."),
        ("vim '+:!rm' -c <1>", "text rm; ?; ..."),
        ("python3 -c <1>", "?; ..."),
        ("python3.12 -c x", "..."),
        ("perl -pi -e <1> x", "?; ..."),
        ("perl -pe<1> x", "?; ..."),
        ("node --eval=<1>", "?; ..."),
        ("python3 -m <1>", "..."),
        ("python3 -W ignore -c <1>", "?; ..."),
        ("node x.js -p <1>", "..."),
        ("deno eval <1>", "?; ..."),
        ("awk '{print $1}' x", ""),
        ("awk 'BEGIN{system(\"rm -rf src\")}'", "text 'rm -rf src'"),
        ("awk '/a|b/ || /c/ {print $1 / 2 | \"sort\"}'", "text sort"),
        ("awk '{system($0)}'", "?"),
        ("awk '{\"date\" | getline x; print \"a\" | c}'", "text date; ?"),
        ("awk -f x y", ""),
        ("awk <1> y", "?; ?"),
    ]);
}

#[test]
fn what_is_not_known_runs_nothing_that_is_told() {
    check(&[("mywrapper rm -rf src", "..."), ("echo rm", "..."), ("<1> rm", "?; ..."), ("", "...")]);
    assert_eq!(children(&[]), Children::default());
}

#[test]
fn a_text_stands_where_it_stood() {
    let exact = |line: &str| match &children(&words(line)).list[0] {
        Child::Text { text, .. } => text.exact,
        Child::Command { words, .. } => words[0].exact,
        other => panic!("{other:?}"),
    };
    for (line, expected) in [
        ("sh -c 'rm x'", Some(7)),
        ("eval rm x", Some(5)),
        ("env -S 'rm x'", Some(8)),
        ("npx vitest@2", Some(4)),
        ("git -c alias.x=!rm x", Some(16)),
        ("git -c alias.x=!rm x y", None),
        ("nice rm", Some(5)),
    ] {
        assert_eq!(exact(line), expected, "{line}");
    }
}

#[test]
fn the_table_names_no_program_twice() {
    let names: Vec<&str> = plain::names().chain(packages::names()).collect();
    let unique: std::collections::HashSet<&str> = names.iter().copied().collect();
    assert_eq!(names.len(), unique.len());
}
