// Package pagefault recognises the runtime's panic for an unreadable address, after
// [debug.SetPanicOnFault]. The cause is a truncated mapped file, or a failing disk.
package pagefault

// Is reports whether a recovered value is the runtime's error for an unreadable address. It returns
// false for nil pointers and indexes out of range.
func Is(recovered any) bool {
	_, fault := recovered.(interface{ Addr() uintptr })
	return fault
}
