package local

import (
	"errors"
	"io/fs"
	"os"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/siltstone-io/siltstone/tiered/bucket"
)

// Large objects go past the system's page cache, in and out, where the file
// system can. What is read is cached above, by tiered; and filling the page
// cache costs several times the CPU of all else that is done with an object.

const (
	// directBytes is from what size on. Below it the cache costs little, and
	// a request to the disk for itself costs more.
	directBytes = 1 << 20
	// directRead is the least that is read so, of an object that was written so.
	directRead = 64 << 10
	// directBuffer is how much is written at once.
	directBuffer = 1 << 20
	// blockBytes is what positions, lengths and memory are multiples of: the
	// largest block of any disk in use.
	blockBytes = 4096
)

// aligned is memory for so many bytes, from the start of a block on.
func aligned(n int64) []byte {
	b := make([]byte, n+blockBytes)
	skip := -uintptr(unsafe.Pointer(unsafe.SliceData(b))) % blockBytes
	return b[skip:][:n:n]
}

var directBuffers = sync.Pool{New: func() any {
	b := aligned(directBuffer)
	return &b
}}

// writeBody writes an object of a size to its new file.
func writeBody(f *os.File, body bucket.Body, size int64) error {
	if size < directBytes || !setDirect(f, true) {
		return writeAll(f, body)
	}
	if err := reserve(f, size); err != nil {
		return &fs.PathError{Op: "reserve space for", Path: f.Name(), Err: err}
	}
	buffer := directBuffers.Get().(*[]byte)
	defer directBuffers.Put(buffer)
	w, r := directWriter{f: f, direct: true}, bodyReader{rest: body}
	for {
		n := r.fill(*buffer)
		if n == 0 {
			return nil
		}
		if err := w.write((*buffer)[:n]); err != nil {
			return &fs.PathError{Op: "write", Path: f.Name(), Err: err}
		}
	}
}

// directWriter writes to a file from its start to its end.
type directWriter struct {
	f      *os.File
	direct bool // past the cache
}

// write writes whole blocks past the cache; the rest, or what the file system
// does not take so, through it.
func (w *directWriter) write(b []byte) error {
	for len(b) > 0 {
		next := b
		if whole := len(b) / blockBytes * blockBytes; w.direct && whole > 0 {
			next = b[:whole]
		} else {
			w.through()
		}
		n, err := unix.Write(int(w.f.Fd()), next)
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EINVAL) && w.direct:
			w.through()
		case err != nil:
			return err
		case n%blockBytes != 0:
			w.through()
		}
		b = b[max(n, 0):]
	}
	return nil
}

// through writes through the cache from here on.
func (w *directWriter) through() {
	if w.direct {
		w.direct = false
		setDirect(w.f, false)
	}
}

// bodyReader reads a body from its start to its end.
type bodyReader struct {
	rest bucket.Body
	read int // of the first of rest
}

// fill copies what comes next, as much as there is room for.
func (r *bodyReader) fill(p []byte) (n int) {
	for len(r.rest) > 0 && n < len(p) {
		m := copy(p[n:], r.rest[0][r.read:])
		n += m
		if r.read += m; r.read == len(r.rest[0]) {
			r.rest, r.read = r.rest[1:], 0
		}
	}
	return n
}

// readRange reads the bytes [from, to) of an object of a size that has them.
func readRange(f *os.File, size, from, to int64) ([]byte, error) {
	if size >= directBytes && to-from >= directRead && setDirect(f, true) {
		start := from / blockBytes * blockBytes
		end := (to + blockBytes - 1) / blockBytes * blockBytes
		data := aligned(end - start)
		n, err := f.ReadAt(data, start)
		if int64(n) >= to-start {
			return data[from-start : to-start : to-start], nil
		}
		if !errors.Is(err, unix.EINVAL) {
			return nil, err
		}
		setDirect(f, false)
	}
	data := make([]byte, to-from)
	_, err := f.ReadAt(data, from)
	return data, err
}
