// Package housetest holds the rules of the house: who imports whom, how packages are named and described, what may be
// committed, and that the documents speak of tests that exist. It has tests only.
package housetest
