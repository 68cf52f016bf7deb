// Package callgrind reads profiles in Callgrind's format and gives stripped
// code its names back.
package callgrind
