// Package housetest holds the rules of this module as tests: which package imports which, how
// packages are named and described, which files may be committed, and that the documents name tests
// that exist.
package housetest
