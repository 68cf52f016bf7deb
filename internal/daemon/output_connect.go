package daemon

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/symfilter/symfilter/internal/written"
)

const (
	dialTimeout = 10 * time.Second // for an attempt with its TLS handshake
	sendBuffer  = 256 << 10        // bytes of the system's buffer for a remote peer
	localBuffer = 64 << 10         // bytes of the system's buffer for a unix socket
	// bytes sent at once
	sendPart = 16 << 10
	owedSome = 64 << 10 // owed bytes from which the peer's progress is checked
	// bytes; a longer beginning of a line is not repeated
	owedLine = 1 << 20
)

// A connectOutput writes to a peer. After a lost connection, it connects again, and repeats the
// lines that the peer may not have received. On a network, a byte counts as received once the
// peer's machine has acknowledged it. On a unix socket, the peer must have read it.
type connectOutput struct {
	persistent
	address address
	secure  *TLS

	live context.Context // done when the output is closed
	end  context.CancelFunc
	all  sync.WaitGroup // goroutines of watch

	turns turns
	line  lineEnd  // guarded by the turn
	conn  net.Conn // guarded by the turn; nil: none
	// bytes at the end of owed that begin an unfinished line. After a reload, the line's stream
	// writes the whole line to the new output, so these bytes are not passed on. The turn guards
	// torn.
	torn int

	mu sync.Mutex
	// left returns the number of bytes that the peer has not received. nil: unknown, or no
	// connection
	left func() (int64, bool)
	// bytes that the peer may not have received, from the start of a line; changed with both the
	// turn and mu held
	owed []byte
}

// newConnectOutput returns an output that connects at the first write.
func newConnectOutput(c Output, log *slog.Logger) (*connectOutput, error) {
	o := &connectOutput{persistent: persistent{log: log}, secure: c.TLS, turns: newTurns()}
	var err error
	if o.address, err = parseAddress(c.Connect, false); err != nil {
		return nil, fmt.Errorf("output.connect: %w", err)
	}
	if _, err := o.security(); err != nil {
		return nil, fmt.Errorf("output.%w", err)
	}
	o.live, o.end = context.WithCancel(context.Background())
	return o, nil
}

// security returns the TLS configuration, or nil. It rereads the files for each connection, since
// they may have changed.
func (o *connectOutput) security() (*tls.Config, error) {
	if o.secure == nil {
		return nil, nil
	}
	host, _, _ := net.SplitHostPort(o.address.name)
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: host}
	if o.secure.Certificate != "" {
		pair, err := tls.LoadX509KeyPair(o.secure.Certificate, o.secure.Key)
		if err != nil {
			return nil, fmt.Errorf("tls: certificate %s with key %s: %w", o.secure.Certificate, o.secure.Key, err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	if o.secure.ClientCA != "" {
		pem, err := os.ReadFile(o.secure.ClientCA)
		if err != nil {
			return nil, fmt.Errorf("tls: client_ca: %w", err)
		}
		if c.RootCAs = x509.NewCertPool(); !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("tls: client_ca: %s contains no PEM certificate", o.secure.ClientCA)
		}
	}
	return c, nil
}

func (o *connectOutput) write(ctx context.Context, from *session, p []byte) (done int, err error) {
	first, err := o.turns.takeFor(ctx, &o.line, from)
	if err != nil {
		return 0, err
	}
	defer o.turns.give()
	err = o.insist(ctx, func() error {
		if err := o.connect(ctx); err != nil {
			return err
		}
		for len(first) > 0 {
			n, err := o.send(ctx, first, true)
			if first = first[n:]; err != nil {
				return err
			}
		}
		for done < len(p) {
			part := p[done:min(len(p), done+sendPart)]
			n, err := o.send(ctx, part, true)
			o.line.wrote(from, part[:n])
			if done += n; err != nil {
				return err
			}
		}
		return nil
	})
	if o.torn = 0; err != nil {
		o.torn = done - fromLine(p, done)
	}
	return done, err
}

// connect connects if there is no connection, and sends the owed bytes again. The caller has the
// turn.
func (o *connectOutput) connect(ctx context.Context) error {
	if o.conn != nil {
		return nil
	}
	soon, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	secure, err := o.security()
	if err != nil {
		return err
	}
	conn, err := new(net.Dialer).DialContext(soon, o.address.network, o.address.name)
	if err != nil {
		return err
	}
	if b, ok := conn.(interface{ SetWriteBuffer(int) error }); ok {
		size := sendBuffer
		if o.address.network == "unix" {
			size = localBuffer
		}
		b.SetWriteBuffer(size) // the system may choose another size
	}
	plain, _ := conn.(syscall.Conn)
	if secure != nil {
		c := tls.Client(conn, secure)
		if err := c.HandshakeContext(soon); err != nil {
			conn.Close()
			return err
		}
		conn = c
	}
	o.conn = conn
	o.all.Go(func() { o.watch(conn, plain, secure != nil) })
	left := written.UnreadOf(plain)
	for sent := 0; sent < len(o.owed); {
		n, err := o.send(ctx, o.owed[sent:min(len(o.owed), sent+sendPart)], false)
		sent += n
		if left != nil {
			if n, ok := left(); ok {
				sent -= o.forget(sent - int(min(n, int64(sent))))
			}
		}
		if err != nil {
			o.drop()
			return err
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.left = left
	return nil
}

// send sends p, and returns the number of bytes sent. If fresh is set, these bytes become owed. The
// caller has the turn.
func (o *connectOutput) send(ctx context.Context, p []byte, fresh bool) (int, error) {
	if fresh && len(o.owed) >= owedSome {
		o.forgetTaken()
	}
	conn := o.conn
	conn.SetWriteDeadline(time.Time{})
	cut := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		conn.SetWriteDeadline(time.Unix(1, 0))
		close(cut)
	})
	n, err := conn.Write(p)
	if !stop() {
		<-cut
	}
	if fresh {
		o.mu.Lock()
		o.owed = append(o.owed, p[:n]...)
		o.mu.Unlock()
	}
	if err == nil {
		o.some = true
		return n, nil
	}
	if _, secure := conn.(*tls.Conn); secure || !errors.Is(err, os.ErrDeadlineExceeded) {
		o.drop() // TLS cannot continue after a partial write
	}
	return n, err
}

// forgetTaken drops the owed bytes that the peer has certainly received.
func (o *connectOutput) forgetTaken() {
	if o.left == nil {
		o.forget(len(o.owed) - sendBuffer) // the system buffers no more bytes
	} else if n, ok := o.left(); ok {
		o.forget(len(o.owed) - int(min(n, int64(len(o.owed)))))
	}
}

// forget drops the lines in owed[:first], which the peer has received, and returns the number of
// dropped bytes. It keeps the beginning of a line that continues after owed[:first], unless that
// beginning exceeds owedLine bytes.
func (o *connectOutput) forget(first int) int {
	if first <= 0 {
		return 0
	}
	start := bytes.LastIndexByte(o.owed[:first], '\n') + 1
	if first-start > owedLine {
		start = first
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.owed = append(o.owed[:0], o.owed[start:]...)
	return start
}

func (o *connectOutput) drop() {
	if o.conn != nil {
		o.conn.Close()
	}
	o.conn = nil
	o.mu.Lock()
	defer o.mu.Unlock()
	o.left = nil
}

// watch drops a connection whose peer is gone. If bytes are owed, it reconnects and sends them,
// without waiting for new lines. It discards all input from the peer.
func (o *connectOutput) watch(conn net.Conn, plain syscall.Conn, secure bool) {
	_, err := io.Copy(io.Discard, conn)
	if err == nil && !secure { // the peer sends nothing more, but may still read
		written.AwaitBroken(plain)
	}
	if o.turns.take(o.live) != nil {
		return
	}
	defer o.turns.give()
	if o.conn != conn {
		return
	}
	o.drop()
	if len(o.owed) > 0 {
		o.insist(o.live, func() error { return o.connect(o.live) })
	}
}

// unread returns how many written bytes the peer may not have received. It returns false if the
// number is unknown.
func (o *connectOutput) unread() (int64, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.left == nil {
		return int64(len(o.owed)), true
	}
	return o.left()
}

func (*connectOutput) reopen() error { return nil }

// close ends the connection. The system still sends its buffered bytes. If lines are owed and there
// is no connection, close returns them in an *unsentError.
func (o *connectOutput) close() error {
	o.end()
	o.turns <- struct{}{} // no write is in progress, since no stage uses the output
	away, owed := o.conn == nil, o.owed[:max(0, len(o.owed)-o.torn)]
	o.drop()
	o.turns.give()
	o.all.Wait()
	if away && len(owed) > 0 {
		return &unsentError{o.address.String(), owed}
	}
	return nil
}
