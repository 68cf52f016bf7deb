// Package housetest tests the rules of this module. The rules are about imports, the names and
// descriptions of packages, the files that may be committed, and the tests that documents name.
package housetest
