//! Reading a policy file: every key is known, every guard can match, and each fault has its place.

use std::collections::BTreeSet;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::{PolicyError, PolicyFault};
use super::grammar;
use super::paths::Place;
use super::rule::{Action, CommandRule, Guard, Rule};
use super::tools::{PATH_TOOLS, SHELL_TOOLS};

/// The largest policy file, in bytes.
pub(super) const MAX_POLICY_BYTES: usize = 1024 * 1024;

/// Folders for temporary files, unless the policy names others.
const TEMPORARY: &str = "/tmp";

/// The placeholder of a temporary folder in a list of places.
const TEMPORARY_PLACE: &str = "<temporary>";

/// The placeholder of the workspace in a list of places.
const WORKSPACE_PLACE: &str = "<workspace>";

/// What a policy file declares: its temporary folders and its guards.
pub(super) fn read(source: &str, name: &str) -> Result<(Vec<String>, Vec<Guard>), PolicyError> {
    let placed = |(at, fault): Fault| {
        let (line, column) = position(source, at);
        PolicyError { file: name.to_owned(), line, column, fault }
    };
    if source.len() > MAX_POLICY_BYTES {
        return Err(placed((0, PolicyFault::TooLarge { bytes: source.len(), limit: MAX_POLICY_BYTES })));
    }
    let document = DeTable::parse(source).map_err(|error| {
        placed((error.span().map_or(0, |span| span.start), PolicyFault::Syntax(error.message().trim_end().replace('\n', "; "))))
    })?;
    policy(&document).map_err(placed)
}

/// A fault, with the byte where it stands.
type Fault = (usize, PolicyFault);
type Read<T> = Result<T, Fault>;

/// The line and the character of a byte, counted from 1.
fn position(source: &str, at: usize) -> (usize, usize) {
    let before = source.get(..at).unwrap_or(source);
    let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
    (line, before.chars().rev().take_while(|character| *character != '\n').count() + 1)
}

fn policy(document: &Spanned<DeTable<'_>>) -> Read<(Vec<String>, Vec<Guard>)> {
    let table = Table { table: document.get_ref(), at: 0..0 };
    table.only(&["guard", "policy"])?;
    let temporary = match table.table_of("policy")? {
        Some(settings) => {
            settings.only(&["temporary_folders"])?;
            settings.texts("temporary_folders", "a list of absolute folders", |folder| folder.starts_with('/'))?
        }
        None => None,
    };
    let declared = match table.get("guard") {
        Some(value) => {
            let list = value.get_ref().as_array().ok_or_else(|| fault(value, wrong("guard", "written as `[[guard]]`")))?;
            list.iter().map(|value| table_in("guard", value)).collect::<Read<Vec<_>>>()?
        }
        None => Vec::new(),
    };
    if declared.is_empty() {
        return Err((0, PolicyFault::NoGuard));
    }
    let mut names = BTreeSet::new();
    let mut guards = Vec::with_capacity(declared.len());
    for declared in &declared {
        let guard = guard(declared)?;
        if !names.insert(guard.name.clone()) {
            return Err((declared.at_of("name"), PolicyFault::DuplicateName(guard.name.to_string())));
        }
        guards.push(guard);
    }
    Ok((temporary.unwrap_or_else(|| vec![TEMPORARY.to_owned()]), guards))
}

fn guard(table: &Table<'_>) -> Read<Guard> {
    table.only(&["action", "command", "name", "path", "reason", "rewrite", "tools"])?;
    let name = table.text("name", "give the guard a name of its own")?;
    let rule = match (table.table_of("command")?, table.table_of("path")?) {
        (Some(command), None) => command_rule(&command)?,
        (None, Some(path)) => {
            path.only(&["outside"])?;
            Rule::Path(path.places()?)
        }
        (Some(_), Some(_)) => {
            return Err((table.at_of("path"), conflict("path", "`command`", "write two guards")));
        }
        (None, None) => return Err((table.at.start, missing("command", "say what the guard looks at: `command` or `path`"))),
    };
    let action = action(table, &rule)?;
    let tools = table.texts("tools", "a list of names of tools", |tool| !tool.is_empty())?;
    let (foreign, remedy) = match rule {
        Rule::Path(_) => (SHELL_TOOLS, "name tools that take a path, or leave `tools` out"),
        Rule::Command(_) | Rule::Flow { .. } => (PATH_TOOLS, "name tools that take a command, or leave `tools` out"),
    };
    if tools.as_ref().is_some_and(|tools| tools.iter().all(|tool| foreign.contains(&tool.as_str()))) {
        return Err((table.at_of("tools"), never(format!("guard {name:?}"), remedy)));
    }
    let reason = table.optional_text("reason")?;
    Ok(Guard { name: name.into(), tools, rule, action, reason: reason.map(Into::into) })
}

fn action(table: &Table<'_>, rule: &Rule) -> Read<Action> {
    let named = table.text("action", "say what a match means: deny, ask, allow, record or rewrite")?;
    let rewrite = table.table_of("rewrite")?;
    if named != "rewrite" && rewrite.is_some() {
        return Err((table.at_of("rewrite"), conflict("rewrite", "another action", "write `action = \"rewrite\"`")));
    }
    Ok(match named {
        "deny" => Action::Deny,
        "ask" => Action::Ask,
        "allow" => Action::Allow,
        "record" => Action::Record,
        "rewrite" => {
            let Rule::Command(command) = rule else {
                return Err((table.at_of("action"), conflict("action", "a path or a flow", "only a `program` can be rewritten")));
            };
            let rewrite =
                rewrite.ok_or((table.at_of("action"), missing("rewrite", "write `rewrite = { program = \"...\" }`")))?;
            rewrite.only(&["program"])?;
            let program = rewrite.text("program", "name the program to run instead")?;
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'+' | b'/');
            if !program.bytes().all(plain) || program.starts_with('-') || program == command.program {
                let expected = "another program, written with letters, digits, `_`, `-`, `.`, `+` and `/` only";
                return Err((rewrite.at_of("program"), wrong("program", expected)));
            }
            Action::Rewrite { program: program.to_owned() }
        }
        _ => return Err((table.at_of("action"), wrong("action", "one of deny, ask, allow, record, rewrite"))),
    })
}

fn command_rule(table: &Table<'_>) -> Read<Rule> {
    table.only(&["flow", "operands", "options", "options_all", "program", "subcommand", "words"])?;
    if let Some(flow) = table.table_of("flow")? {
        if let Some(key) = ["operands", "options", "options_all", "program", "subcommand", "words"]
            .into_iter()
            .find(|key| table.get(key).is_some())
        {
            return Err((table.at_of(key), conflict(key, "`flow`", "write two guards")));
        }
        flow.only(&["from", "to"])?;
        let side = |key| {
            flow.texts(key, "a list of programs", is_name)?
                .ok_or((flow.at.start, missing(key, "name the programs of both sides")))
        };
        return Ok(Rule::Flow { from: side("from")?, to: side("to")? });
    }
    let program = table.text("program", "name the program, or a `flow`")?;
    if !is_name(program) {
        return Err((
            table.at_of("program"),
            never(format!("program {program:?}"), "write the bare name, without folder and blanks"),
        ));
    }
    let subcommand = table.texts("subcommand", "a list of subcommands", |name| !name.is_empty() && !name.starts_with('-'))?;
    let options = table.texts("options", "a list of options such as `-f`, `--force`", is_option)?;
    let groups = table.texts("options_all", "a list of groups such as `-f|--force`", |group| group.split('|').all(is_option))?;
    let options_all: Vec<Vec<String>> =
        groups.unwrap_or_default().iter().map(|group| group.split('|').map(str::to_owned).collect()).collect();
    let options = options.unwrap_or_default();
    if let Some(grouped) = grammar::program(program)
        .and_then(|_| options.iter().chain(options_all.iter().flatten()).find(|option| is_grouped(option)))
    {
        let key = if options.contains(grouped) { "options" } else { "options_all" };
        let remedy = "one-letter options are matched one by one: write `options_all = [\"-a\", \"-b\"]`";
        return Err((table.at_of(key), never(format!("option {grouped:?}"), remedy)));
    }
    let words = table.texts("words", "a list of patterns", |pattern| !pattern.is_empty())?;
    let outside = match table.table_of("operands")? {
        Some(operands) => {
            operands.only(&["outside"])?;
            Some(operands.places()?)
        }
        None => None,
    };
    Ok(Rule::Command(CommandRule {
        program: program.to_owned(),
        subcommand: subcommand.unwrap_or_default(),
        options,
        options_all,
        words: words.unwrap_or_default(),
        outside,
    }))
}

/// Whether a text is the base name of a program.
fn is_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'/')
}

/// Whether a text is the name of an option, without a value.
fn is_option(text: &str) -> bool {
    let name = text.trim_start_matches('-');
    (1..=2).contains(&(text.len() - name.len())) && !name.is_empty() && !name.contains(['=', ' ', '|'])
}

/// Whether an option is several one-letter options in one word.
fn is_grouped(option: &str) -> bool {
    !option.starts_with("--") && option.chars().count() > 2
}

/// A table of the file.
struct Table<'t> {
    table: &'t DeTable<'t>,
    at: Range<usize>,
}

impl<'t> Table<'t> {
    /// Refuses keys other than these.
    fn only(&self, keys: &[&str]) -> Read<()> {
        let mut unknown: Vec<_> =
            self.table.iter().map(|(key, _)| key).filter(|key| !keys.contains(&key.get_ref().as_ref())).collect();
        unknown.sort_by_key(|key| key.span().start);
        match unknown.first() {
            None => Ok(()),
            Some(key) => {
                let expected = keys.join(", ");
                Err((key.span().start, PolicyFault::UnknownKey { key: key.get_ref().to_string(), expected }))
            }
        }
    }

    fn get(&self, key: &str) -> Option<&'t Spanned<DeValue<'t>>> {
        self.table.get(key)
    }

    /// Where a value stands; of a missing one, where the table does.
    fn at_of(&self, key: &str) -> usize {
        self.get(key).map_or(self.at.start, |value| value.span().start)
    }

    fn table_of(&self, key: &str) -> Read<Option<Table<'t>>> {
        self.get(key).map(|value| table_in(key, value)).transpose()
    }

    fn optional_text(&self, key: &str) -> Read<Option<&'t str>> {
        let Some(value) = self.get(key) else { return Ok(None) };
        match value.get_ref().as_str().filter(|text| !text.trim().is_empty()) {
            Some(text) => Ok(Some(text)),
            None => Err(fault(value, wrong(key, "a text that is not empty"))),
        }
    }

    fn text(&self, key: &'static str, remedy: &'static str) -> Read<&'t str> {
        self.optional_text(key)?.ok_or((self.at.start, missing(key, remedy)))
    }

    /// A list of texts that is not empty, each of the given form.
    fn texts(&self, key: &str, expected: &'static str, form: impl Fn(&str) -> bool) -> Read<Option<Vec<String>>> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let list = value.get_ref().as_array().filter(|list| !list.is_empty());
        let list = list.ok_or_else(|| fault(value, wrong(key, expected)))?;
        let text = |value: &Spanned<DeValue<'_>>| match value.get_ref().as_str().filter(|text| form(text)) {
            Some(text) => Ok(text.to_owned()),
            None => Err(fault(value, wrong(key, expected))),
        };
        list.iter().map(text).collect::<Read<Vec<_>>>().map(Some)
    }

    /// The places under `outside`.
    fn places(&self) -> Read<Vec<Place>> {
        if self.get("outside").is_some_and(|value| value.get_ref().as_str() == Some("workspace")) {
            return Ok(vec![Place::Workspace]);
        }
        let expected = "\"workspace\", or a list of folders, `<workspace>` and `<temporary>`";
        let is_place = |text: &str| match text {
            TEMPORARY_PLACE | WORKSPACE_PLACE => true,
            // One letter away from the workspace itself: `./workspace` says that a folder is meant.
            "workspace" | "temporary" | "" => false,
            text => !text.starts_with(['<', '~']),
        };
        let places = self
            .texts("outside", expected, is_place)?
            .ok_or((self.at.start, missing("outside", "say which places are inside")))?;
        let place = |text: String| match text.as_str() {
            TEMPORARY_PLACE => Place::Temporary,
            WORKSPACE_PLACE => Place::Workspace,
            _ => Place::Folder(text),
        };
        Ok(places.into_iter().map(place).collect())
    }
}

fn table_in<'t>(key: &str, value: &'t Spanned<DeValue<'t>>) -> Read<Table<'t>> {
    match value.get_ref().as_table() {
        Some(table) => Ok(Table { table, at: value.span() }),
        None => Err(fault(value, wrong(key, "a table"))),
    }
}

fn fault(value: &Spanned<DeValue<'_>>, fault: PolicyFault) -> Fault {
    (value.span().start, fault)
}

fn wrong(key: &str, expected: &'static str) -> PolicyFault {
    PolicyFault::Value { key: key.to_owned(), expected }
}

fn missing(key: &'static str, remedy: &'static str) -> PolicyFault {
    PolicyFault::Missing { key, remedy }
}

fn conflict(key: &'static str, other: &'static str, remedy: &'static str) -> PolicyFault {
    PolicyFault::Conflict { key, other, remedy }
}

fn never(what: String, remedy: &'static str) -> PolicyFault {
    PolicyFault::NeverMatches { what, remedy }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(source: &str) -> String {
        read(source, "p.toml").unwrap_err().to_string()
    }

    /// A guard with one line of its own at line 4.
    fn with(line: &str) -> String {
        refused(&format!("[[guard]]\nname = \"g\"\naction = \"deny\"\n{line}\n"))
    }

    fn command(members: &str) -> String {
        with(&format!("command = {{ program = \"rm\", {members} }}"))
    }

    /// 10-cli: an unknown key is an error with its line.
    #[test]
    fn an_unknown_key_is_named_with_its_place_on_every_level() {
        assert_eq!(refused("[[guards]]"), "p.toml:1:3: unknown key `guards`: expected one of guard, policy");
        assert_eq!(refused("[policy]\ntemporary = 1"), "p.toml:2:1: unknown key `temporary`: expected one of temporary_folders");
        assert!(with("tool = [\"Bash\"]").starts_with("p.toml:4:1: unknown key `tool`: expected one of action, command, name"));
        assert!(command("option = [\"-f\"]").starts_with("p.toml:4:29: unknown key `option`: expected one of flow, operands"));
        assert!(command("operands = { inside = [\"x\"] }").starts_with("p.toml:4:42: unknown key `inside`"));
        assert!(with("command = { flow = { from = [\"a\"], too = [\"b\"] } }").starts_with("p.toml:4:36: unknown key `too`"));
        assert!(with("path = { outside = \"workspace\", x = 1 }").starts_with("p.toml:4:33: unknown key `x`"));
    }

    #[test]
    fn the_first_fault_of_the_text_is_named_by_line_and_character() {
        assert!(refused("\n\n[[guard]\n").starts_with("p.toml:3:9: not TOML: "));
        assert!(refused("name = \"é\" é").starts_with("p.toml:1:12: not TOML: "));
        assert!(refused("a = 1\na = 2").starts_with("p.toml:2:1: not TOML: "));
    }

    #[test]
    fn a_file_without_guards_is_refused() {
        for source in ["", "# nothing\n", "[policy]\n", "guard = []"] {
            assert_eq!(refused(source), "p.toml:1:1: no `[[guard]]` in the file: a policy has at least one", "{source:?}");
        }
        assert!(refused("guard = 1").contains("`guard` must be written as `[[guard]]`"));
        let large = "#".repeat(MAX_POLICY_BYTES + 1);
        assert!(refused(&large).starts_with("p.toml:1:1: the file has 1048577 bytes"));
    }

    #[test]
    fn what_is_missing_or_ill_typed_is_named() {
        for (line, expected) in [
            ("command = 1", "p.toml:4:11: `command` must be a table"),
            ("", "p.toml:1:1: `command` is missing: say what the guard looks at: `command` or `path`"),
            ("command = {}", "p.toml:4:11: `program` is missing: name the program, or a `flow`"),
            ("command = { program = \"\" }", "p.toml:4:23: `program` must be a text that is not empty"),
            ("path = {}", "p.toml:4:8: `outside` is missing: say which places are inside"),
            ("path = { outside = \"work\" }", "p.toml:4:20: `outside` must be \"workspace\", or a list"),
            ("path = { outside = [\"<temp>\"] }", "p.toml:4:21: `outside` must be \"workspace\", or a list"),
            ("path = { outside = [\"workspace\"] }", "p.toml:4:21: `outside` must be \"workspace\", or a list"),
            ("command = { flow = { from = [\"a\"] } }", "p.toml:4:20: `to` is missing: name the programs of both sides"),
            ("command = { flow = { from = [], to = [\"b\"] } }", "p.toml:4:29: `from` must be a list of programs"),
            ("command = { program = \"a\" }\ntools = []", "p.toml:5:9: `tools` must be a list of names of tools"),
            ("command = { program = \"a\" }\ntools = [1]", "p.toml:5:10: `tools` must be a list of names of tools"),
            ("command = { program = \"a\" }\nreason = \" \"", "p.toml:5:10: `reason` must be a text that is not empty"),
        ] {
            let refused = with(line);
            assert!(refused.starts_with(expected), "{line}: {refused}");
        }
        assert!(refused("[[guard]]\naction = \"deny\"").starts_with("p.toml:1:1: `name` is missing"));
        assert!(refused("[[guard]]\nname = \"g\"\ncommand = { program = \"a\" }").starts_with("p.toml:1:1: `action` is missing"));
        assert!(
            refused("[policy]\ntemporary_folders = [\"tmp\"]")
                .starts_with("p.toml:2:22: `temporary_folders` must be a list of absolute")
        );
    }

    /// 10-cli: a guard that can never match is an error with its line.
    #[test]
    fn a_guard_that_can_never_match_is_refused() {
        for (line, at) in [
            ("command = { program = \"/bin/rm\" }", "4:23: program \"/bin/rm\" can never match"),
            ("command = { program = \"rm -rf\" }", "4:23: program \"rm -rf\" can never match"),
            ("command = { program = \"rm\", options = [\"-rf\"] }", "4:39: option \"-rf\" can never match"),
            ("command = { program = \"rm\", options_all = [\"-r|-fr\"] }", "4:43: option \"-fr\" can never match"),
            ("command = { program = \"rm\" }\ntools = [\"Edit\"]", "5:9: guard \"g\" can never match"),
            ("path = { outside = \"workspace\" }\ntools = [\"Bash\", \"shell\"]", "5:9: guard \"g\" can never match"),
        ] {
            let refused = with(line);
            assert!(refused.starts_with(&format!("p.toml:{at}")), "{line}: {refused}");
        }
        for members in [
            "options = [\"f\"]",
            "options = [\"--force=x\"]",
            "options = [\"--\"]",
            "options_all = [\"-f||-r\"]",
            "options = []",
            "words = []",
            "words = [\"\"]",
            "subcommand = [\"-x\"]",
            "subcommand = []",
            "operands = { outside = [] }",
        ] {
            assert!(command(members).contains("must be"), "{members}: {}", command(members));
        }
    }

    #[test]
    fn an_action_has_what_it_needs_and_nothing_else() {
        let guard = |action: &str, rest: &str| refused(&format!("[[guard]]\nname = \"g\"\naction = \"{action}\"\n{rest}\n"));
        let npm = "command = { program = \"npm\" }";
        for (refused, expected) in [
            (guard("block", npm), "p.toml:3:10: `action` must be one of deny, ask, allow, record, rewrite"),
            (guard("rewrite", npm), "p.toml:3:10: `rewrite` is missing: write `rewrite = { program = \"...\" }`"),
            (guard("rewrite", &format!("{npm}\nrewrite = {{}}")), "p.toml:5:11: `program` is missing"),
            (
                guard("rewrite", &format!("{npm}\nrewrite = {{ program = \"npm\" }}")),
                "p.toml:5:23: `program` must be another program",
            ),
            (
                guard("rewrite", &format!("{npm}\nrewrite = {{ program = \"a;b\" }}")),
                "p.toml:5:23: `program` must be another program",
            ),
            (
                guard("deny", &format!("{npm}\nrewrite = {{ program = \"pnpm\" }}")),
                "p.toml:5:11: `rewrite` does not go with another action",
            ),
            (guard("rewrite", "path = { outside = \"workspace\" }"), "p.toml:3:10: `action` does not go with a path or a flow"),
            (
                guard("deny", &format!("{npm}\npath = {{ outside = \"workspace\" }}")),
                "p.toml:5:8: `path` does not go with `command`",
            ),
            (
                guard("deny", "command = { program = \"a\", flow = { from = [\"a\"], to = [\"b\"] } }"),
                "p.toml:4:23: `program` does not go with `flow`",
            ),
        ] {
            assert!(refused.starts_with(expected), "{refused}");
        }
    }

    #[test]
    fn two_guards_of_one_name_are_refused() {
        let guard = "[[guard]]\nname = \"g\"\naction = \"deny\"\ncommand = { program = \"a\" }\n";
        assert!(refused(&guard.repeat(2)).starts_with("p.toml:6:8: a second guard is named \"g\""));
    }
}
