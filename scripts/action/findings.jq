# Functions with which the step "filter the log" of action.yml reads the SARIF that symfilter writes.

# new_results is the array of the results that no baseline accepts.
def new_results: [.runs[].results[] | select(.baselineState != "unchanged")];

def count: new_results | length;

# sentence is the text of a result without its links to related places, which only a viewer of SARIF can follow.
def sentence:
  .message.text
  | gsub(" \\[(\\\\.|[^\\]\\\\])*\\]\\([0-9]+\\)\\.?"; "")
  | gsub("\\\\(?<c>[\\[\\]\\\\])"; .c)
  | if length > 500 then .[:500] + "…" else . end;

def place: .locations[0].physicalLocation // {};

# command_text escapes a text for a runner command, which is one line.
def command_text: gsub("%"; "%25") | gsub("\r"; "%0D") | gsub("\n"; "%0A");

# annotations prints for each result the level, URI, line, rule and text, with the character 0x1f between them: 10 of each level,
# since GitHub drops the others.
def annotations:
  new_results
  | group_by(.level)[]
  | .[:10][]
  | [ ({error: "error", warning: "warning"}[.level] // "notice"),
      (place.artifactLocation.uri // ""),
      (place.region.startLine // 1 | tostring),
      .ruleId,
      (sentence | gsub("\u001f"; " ") | command_text) ]
  | join("\u001f");

# cell escapes a text for a table of Markdown: it encodes punctuation, so that no name of a function is a link, a tag or a new cell.
def cell:
  [ explode[]
    | if . < 32 then " "
      elif . > 126 or (. >= 48 and . <= 57) or (. >= 65 and . <= 90) or (. >= 97 and . <= 122) or ([.] | implode | inside(" .,/()-"))
      then [.] | implode
      else "&#\(.);" end ]
  | join("");

# summary prints the results as a table of Markdown.
def summary:
  new_results as $new
  | ([.runs[].results[]] | length - ($new | length)) as $accepted
  | "### symfilter: \($new | length) finding\(if ($new | length) == 1 then "" else "s" end)\(if $accepted > 0 then ", and \($accepted) in the baseline" else "" end)",
    "",
    (select($new != [])
     | "| level | finding | place | times |",
       "|---|---|---|---|",
       ($new[:100][]
        | "| \(.level) | \(.ruleId + ": " + sentence | cell) | \((place.artifactLocation.uri // "" | ltrimstr("file://")) + (place.region.startLine // "" | if . == "" then "" else ":\(.)" end) | cell) | \(.occurrenceCount // 1) |"),
       (select(($new | length) > 100) | "", "\(($new | length) - 100) more are in the SARIF file."),
       "");
