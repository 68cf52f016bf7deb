// Package batch looks up many addresses for one request of another program.
//
// A [Reader] reads the JSON of a request without keeping more than one string of it. [Look] looks
// up all addresses of a request together. The modules of this machine are answered first; then all
// others are waited for at once, so that one slow server holds up only its own modules. [Symbolize]
// is the protocol of symfilterd's own path; the protocols of other programs have packages of their
// own.
//
// All that grows with a request is granted by its [Room] before it is allocated.
package batch
