package faultproxy

import (
	"bytes"
	"errors"
	"io"
	"net/http"
)

var errCut = errors.New("cut")

// cut ends with an error after so many bytes.
type cut struct {
	io.Reader
	io.Closer
}

func (c *cut) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	if err == io.EOF {
		err = errCut
	}
	return n, err
}

// cutInHalf ends a body after half of its length; where that is not known,
// before its first byte.
func cutInHalf(body io.ReadCloser, length int64) io.ReadCloser {
	if length == 0 {
		return body
	}
	return &cut{io.LimitReader(body, max(0, length/2)), body}
}

// cutReply reads a reply whole, as its length may not be known, and leaves half
// of its body.
func cutReply(reply *http.Response) error {
	body, err := io.ReadAll(reply.Body)
	if err != nil {
		return err
	}
	if len(body) == 0 {
		return nil
	}
	reply.Body = &cut{bytes.NewReader(body[:len(body)/2]), reply.Body}
	return nil
}
