package debuginfod

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"time"
)

// A failure is the reason why a server sent no file, although it may have the file. It does not
// wrap fs.ErrNotExist.
type failure struct {
	reason     string
	retry      bool          // the same request may succeed soon
	retryAfter time.Duration // the server's Retry-After; 0 without one
	verdict    bool          // final: the same request would get the same answer
	canceled   bool          // canceled because no caller waits any more; the server's state is unknown
	blameless  bool          // not a fault of the server
	local      bool          // a fault of this machine or its settings, which the operator can mend
	unreached  bool          // no connection was made
}

func (f *failure) Error() string { return f.reason }

func failuref(format string, args ...any) *failure {
	return &failure{reason: fmt.Sprintf(format, args...)}
}

// reasons why the client cancels a request
var (
	errSlow  = errors.New("too slow")
	errTotal = errors.New("took too long")
	errLost  = errors.New("another server was first")
)

// ErrClosed is returned if the Client was closed before the file was received.
var ErrClosed = errors.New("debuginfod: the client is closed")

// failed converts err, the error of a request, into a failure. ctx is the context of the request,
// and began is its start time. body is set if a part of the answer's body was received.
func (c *Client) failed(ctx context.Context, err error, began time.Time, body bool) *failure {
	var redirect *redirectError
	var certificate *tls.CertificateVerificationError
	var hostname x509.HostnameError
	var authority x509.UnknownAuthorityError
	var record tls.RecordHeaderError
	var dns *net.DNSError
	var own *failure
	var network net.Error
	switch cause := context.Cause(ctx); {
	case errors.As(err, &own):
		return own
	case errors.Is(cause, errSlow) && body:
		return failuref("sent less than %d KiB within %v", minProgress>>10, c.timeout)
	case errors.Is(cause, errSlow):
		return failuref("did not answer within %v", c.timeout)
	case errors.Is(cause, errTotal):
		return failuref("did not finish within %v", c.o.MaxTime)
	case cause != nil:
		return &failure{reason: "not waited for", canceled: true}
	case errors.As(err, &redirect):
		return failuref("%v", redirect)
	case errors.As(err, &certificate), errors.As(err, &hostname), errors.As(err, &authority):
		return failuref("its certificate is not valid: %v", lastError(err))
	case errors.As(err, &record):
		return failuref("does not speak TLS")
	case errors.As(err, &dns) && dns.IsNotFound:
		return &failure{reason: "its host name has no address: " + dns.Name, unreached: true}
	case errors.As(err, &dns):
		return &failure{reason: "its host name could not be resolved: " + dns.Err, retry: !dns.IsTimeout, unreached: true}
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return &failure{reason: "ended the connection in the middle of its answer", retry: true}
	case errors.Is(err, syscall.ECONNREFUSED):
		return &failure{reason: "refuses connections", retry: true, unreached: true}
	case errors.As(err, &network) && network.Timeout():
		return failuref("cannot be reached within %v", time.Since(began).Round(time.Second))
	}
	if _, ok := errors.AsType[*net.OpError](err); ok {
		return &failure{reason: "cannot be reached: " + lastError(err).Error(), retry: true, unreached: true}
	}
	return &failure{reason: fmt.Sprintf("its answer is malformed: %.200s", lastError(err)), retry: true}
}

// lastError returns the innermost error, without the operation and the file name.
func lastError(err error) error {
	for {
		next := errors.Unwrap(err)
		if next == nil {
			return err
		}
		err = next
	}
}
