//go:build !unix

package buildid

const openFlags = 0
