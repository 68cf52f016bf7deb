package buildid

// A PrefixMap replaces the prefix Old of a path by New.
type PrefixMap struct{ Old, New string }
