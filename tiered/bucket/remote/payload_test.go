package remote

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"testing/iotest"

	"github.com/siltstone-io/siltstone/tiered/bucket"
)

func TestPayload(t *testing.T) {
	body := bucket.Body{nil, []byte("ab"), {}, []byte("c"), []byte("defg"), nil}
	p := newPayload(body)
	if err := iotest.TestReader(p.Reader, []byte("abcdefg")); err != nil { // it seeks, too
		t.Error(err)
	}
	if p.Length != 7 {
		t.Errorf("Length = %d", p.Length)
	}
	// The check value of CRC-32C (iSCSI, RFC 3720) is 0xE3069283, big-endian here.
	if got := newPayload(bucket.Body{[]byte("1234"), []byte("56789")}).CRC32C; got != "4waSgw==" {
		t.Errorf("CRC32C = %s", got)
	}
	if err := iotest.TestReader(newPayload(nil).Reader, nil); err != nil {
		t.Error(err)
	}
}

func TestDetach(t *testing.T) {
	p := newPayload(bucket.Body{[]byte("abc")})
	if n, err := p.Read(make([]byte, 1)); n != 1 || err != nil {
		t.Errorf("Read = %d, %v", n, err)
	}
	p.detach()
	if n, err := p.Read(make([]byte, 1)); n != 0 || !errors.Is(err, errDetached) {
		t.Errorf("Read after the request = %d, %v", n, err)
	}
}

func TestSection(t *testing.T) {
	whole := []byte("abcdefghij")
	body := bucket.Body{whole[:3], nil, whole[3:4], whole[4:]}
	for from := range len(whole) + 1 {
		for to := from; to <= len(whole)+2; to++ {
			got, err := io.ReadAll(newPayload(section(body, int64(from), int64(to))).Reader)
			if want := whole[from:min(to, len(whole))]; err != nil || !bytes.Equal(got, want) {
				t.Errorf("section(%d, %d) = %q, %v; want %q", from, to, got, err, want)
			}
		}
	}
}

func FuzzContentRange(f *testing.F) {
	for _, text := range []string{"bytes 0-0/1", "bytes 3-6/10", "bytes 0-9223372036854775807/9223372036854775807", "bytes */3", "bytes 5-4/9", ""} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		from, length, total, err := parseContentRange(text)
		if err != nil {
			if !errors.Is(err, ErrGarbled) {
				t.Errorf("%q: %v", text, err)
			}
			return
		}
		if from < 0 || length < 1 || from+length > total || from+length < 0 {
			t.Errorf("%q is [%d, +%d) of %d", text, from, length, total)
		}
	})
}
