package tcp

import (
	"bufio"
	"bytes"
	"io"
	"testing"

	"github.com/siltstone-io/siltstone/agent/peer"
)

// FuzzFrames: whatever comes, each message that is read stands in it, and what
// is allocated is in proportion to it.
func FuzzFrames(f *testing.F) {
	f.Fuzz(func(t *testing.T, b []byte) {
		var again []byte
		r := bufio.NewReader(bytes.NewReader(b))
		for {
			message, err := readFrame(r)
			if err != nil {
				break
			}
			if cap(message) > max(len(b), firstBytes) {
				t.Fatalf("%d bytes were allocated for %d", cap(message), len(b))
			}
			again = append(again, frame(message)...)
		}
		if !bytes.HasPrefix(b, again) {
			t.Fatalf("%x was read as %x", b, again)
		}
	})
}

// ends are what one end hears, and what it says.
type ends struct {
	io.Reader
	said bytes.Buffer
}

func (e *ends) Write(b []byte) (int, error) { return e.said.Write(b) }

// FuzzHello: nobody is taken who does not know the secret, nor answered who is
// no agent.
func FuzzHello(f *testing.F) {
	id := identity{self: 2, cluster: testCluster, secret: testSecret}
	f.Fuzz(func(t *testing.T, b []byte) {
		e := &ends{Reader: bytes.NewReader(b)}
		if h, err := id.accept(e); err == nil {
			t.Fatalf("%+v was taken", h)
		}
		if n := e.said.Len(); n != 0 && (n != answerBytes || !bytes.HasPrefix(b, []byte(magic))) {
			t.Fatalf("answered with %d bytes", n)
		}
	})
}

// FuzzAnswer: nobody proves to be a peer who does not know the secret.
func FuzzAnswer(f *testing.F) {
	id := identity{self: 1, cluster: testCluster, secret: testSecret}
	f.Fuzz(func(t *testing.T, b []byte) {
		e := &ends{Reader: bytes.NewReader(b)}
		if err := id.dial(e, 2, peer.Bulk); err == nil || refused(err) {
			t.Fatalf("%v", err)
		}
		if n := e.said.Len(); n != helloBytes {
			t.Fatalf("said %d bytes", n)
		}
	})
}
