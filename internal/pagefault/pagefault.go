// Package pagefault recognises the panic for an address that cannot be read, which the runtime
// raises after [debug.SetPanicOnFault]: a mapped file was truncated, or its disk fails.
package pagefault

// Is reports whether a recovered value is the runtime's error for an address that cannot be read.
// Nil pointers and indexes out of range are not.
func Is(recovered any) bool {
	_, fault := recovered.(interface{ Addr() uintptr })
	return fault
}
