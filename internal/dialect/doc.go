// Package dialect parses backtraces without markup: it turns a line into frames, each with a module
// and an address or offset.
//
// A [Reader] receives the lines that may have a frame, and finds the frames with the grammars of
// [All]. It collects the [Facts] in the lines around them, such as maps and build IDs. Package
// judge uses frames and facts to locate the frames in files.
//
// The package depends neither on a file nor on the layout of the output. The [Edit] values of a
// [Frame] are the parts of its line that an answer (the resolved function, file and line) replaces
// or follows.
//
// A grammar of a [Dialect] names an anchor, such as "0x", and the bytes that may be before it and
// after its digits. Five table lookups (fitting.go) reject nearly all anchors outside of frames. A
// line whose anchors are all rejected need not be passed to the Reader. If ordinary text could
// match a grammar, its matches are accepted only in a window after a header, usually of 256 lines.
// Plain lines are not searched for headers: when a trace begins, the 16 KiB before it are searched.
//
// Lines may be hostile. Every grammar takes time linear in the length of the line.
package dialect
