// Package batch looks up many addresses for one request of another program.
//
// A [Reader] reads a request's JSON, and keeps at most one string of it. [Symbols.Look] looks up
// all addresses of a request. Modules on this machine come first. All others are then waited for at
// once: a slow server delays only its own modules. [Symbolize] is the protocol of symfilterd's own
// path; the protocols of other programs have packages of their own.
//
// Memory that grows with a request is granted by its [Room] before it is allocated.
package batch
