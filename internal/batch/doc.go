// Package batch looks up many addresses for one request of another program.
//
// A [Reader] reads a request's JSON, and keeps at most one string of it. [Symbols.Look] looks up
// all addresses of a request, first in the modules on this machine. Then it waits for all other
// modules at once: a slow server delays only its own modules. [Symbolize] implements symfilterd's
// own protocol. The protocols of other programs have separate packages.
//
// Memory that grows with a request is granted by its [Room] before it is allocated.
package batch
